CREATE SCHEMA golden;
CREATE TABLE golden.entries (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    who text NOT NULL,
    body text,
    sealed bytea,
    crc bigint NOT NULL
);
CREATE TABLE golden.holders (
    id bigint NOT NULL,
    name text NOT NULL,
    until timestamp with time zone NOT NULL
);
ALTER TABLE golden.holders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME golden.holders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE golden.mail (
    id bigint NOT NULL,
    run bigint NOT NULL,
    question text,
    kind text NOT NULL,
    body text,
    sealed bytea,
    is_read boolean DEFAULT false NOT NULL
);
ALTER TABLE golden.mail ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME golden.mail_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE golden.runs (
    id bigint NOT NULL,
    run text NOT NULL,
    graph text DEFAULT ''::text NOT NULL,
    digest text DEFAULT ''::text NOT NULL,
    thread text DEFAULT ''::text NOT NULL,
    forked_from text DEFAULT ''::text NOT NULL,
    status text DEFAULT 'open'::text NOT NULL,
    epoch bigint NOT NULL,
    holder bigint DEFAULT 0 NOT NULL,
    next bigint DEFAULT 0 NOT NULL,
    due double precision,
    has_mail boolean DEFAULT false NOT NULL,
    begun double precision NOT NULL,
    touched double precision NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE golden.runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME golden.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE golden.sealing (
    id integer NOT NULL,
    proof bytea NOT NULL,
    CONSTRAINT sealing_id_check CHECK ((id = 1))
);
CREATE TABLE golden.version (
    number integer NOT NULL
);
INSERT INTO golden.entries VALUES (1, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"thread":"t","after":"","before":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":0.015052,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 85419922);
INSERT INTO golden.entries VALUES (1, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.051818,"used":{"firings":1}}', NULL, 507452333);
INSERT INTO golden.entries VALUES (1, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.06075,"used":{"firings":1}}', NULL, 3917816676);
INSERT INTO golden.entries VALUES (1, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.068156,"used":{"firings":0}}', NULL, 2989039571);
INSERT INTO golden.entries VALUES (2, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":8.2e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 3192483352);
INSERT INTO golden.entries VALUES (2, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.012934,"used":{"firings":1}}', NULL, 4051444644);
INSERT INTO golden.entries VALUES (2, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.014718,"used":{"firings":1}}', NULL, 3339228524);
INSERT INTO golden.entries VALUES (2, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.015978,"used":{"firings":0}}', NULL, 3760138820);
INSERT INTO golden.entries VALUES (3, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":7.5e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 3004069517);
INSERT INTO golden.entries VALUES (3, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.008418,"used":{"firings":1}}', NULL, 1953511886);
INSERT INTO golden.entries VALUES (3, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.010449,"used":{"firings":1}}', NULL, 2871108685);
INSERT INTO golden.entries VALUES (3, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.016809,"used":{"firings":0}}', NULL, 497584657);
INSERT INTO golden.entries VALUES (1, 4, 'resumed', '', '{"at":0.068203,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 1244137383);
INSERT INTO golden.entries VALUES (1, 5, 'answer', '', '{"id":"asks?n","value":5,"at":0.068258,"used":{"firings":0}}', NULL, 2261343685);
INSERT INTO golden.entries VALUES (1, 6, 'done', '[[],"asks",[]]', '{"delta":{},"sends":[["asks->@exit",{"answer":"\u00fcn\u00efcode 5"},null]],"at":0.09191,"used":{"firings":1}}', NULL, 3959988762);
INSERT INTO golden.entries VALUES (1, 7, 'ended', '', '{"status":"done","state":{},"output":{"answer":"\u00fcn\u00efcode 5"},"at":0.092136,"used":{"firings":1}}', NULL, 1944846496);
INSERT INTO golden.entries VALUES (4, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":4.9e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 4233403703);
INSERT INTO golden.entries VALUES (4, 1, 'ended', '', '{"status":"failed","error":"AX401 node \"asks\": ConnectionError: not today","at":0.002122,"used":{"firings":1}}', NULL, 1099202003);
INSERT INTO golden.mail OVERRIDING SYSTEM VALUE VALUES (1, 3, 'asks?n', 'answer', '{"id":"asks?n","value":8}', NULL, false);
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (2, 'paused', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'paused', 60439938048590271, 0, 4, NULL, false, 1500000002, 1500000002);
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (1, 'done', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', 't', '', 'done', 2480810840305312645, 0, 8, NULL, false, 1500000001, 1500000001);
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (4, 'failed', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'failed', 3380040187163075381, 0, 2, NULL, false, 1500000004, 1500000004);
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (3, 'posted', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'paused', 687977760695078909, 0, 4, 0, true, 1500000003, 1500000003);
INSERT INTO golden.version VALUES (1);
SELECT pg_catalog.setval('golden.holders_id_seq', 1, true);
SELECT pg_catalog.setval('golden.mail_id_seq', 1, true);
SELECT pg_catalog.setval('golden.runs_id_seq', 4, true);
ALTER TABLE ONLY golden.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (run, seq);
ALTER TABLE ONLY golden.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.mail
    ADD CONSTRAINT mail_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.runs
    ADD CONSTRAINT runs_run_key UNIQUE (run);
ALTER TABLE ONLY golden.sealing
    ADD CONSTRAINT sealing_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX mail_by_question ON golden.mail USING btree (run, question) WHERE (question IS NOT NULL);
CREATE INDEX mail_by_run ON golden.mail USING btree (run) WHERE (NOT is_read);
CREATE INDEX runs_by_due ON golden.runs USING btree (due, id) WHERE ((holder = 0) AND (due IS NOT NULL));
CREATE INDEX runs_by_holder ON golden.runs USING btree (holder) WHERE (holder <> 0);
CREATE INDEX runs_by_loss ON golden.runs USING btree (id) WHERE ((holder = 0) AND (status = 'running'::text));
CREATE INDEX runs_by_thread ON golden.runs USING btree (thread, id) WHERE (thread <> ''::text);
CREATE INDEX runs_by_turn ON golden.runs USING btree ((
CASE
    WHEN (due = (0)::double precision) THEN touched
    ELSE due
END), id) WHERE ((holder = 0) AND (due IS NOT NULL));
ALTER TABLE ONLY golden.entries
    ADD CONSTRAINT entries_run_fkey FOREIGN KEY (run) REFERENCES golden.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY golden.mail
    ADD CONSTRAINT mail_run_fkey FOREIGN KEY (run) REFERENCES golden.runs(id) ON DELETE CASCADE;
