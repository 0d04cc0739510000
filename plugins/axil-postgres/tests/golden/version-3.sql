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
CREATE TABLE golden.once (
    queue text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    run bigint NOT NULL
);
CREATE TABLE golden.queue_keys (
    queue text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    saved double precision NOT NULL,
    saved_at double precision NOT NULL
);
CREATE TABLE golden.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    priority integer DEFAULT 0 NOT NULL,
    concurrency integer,
    key_concurrency integer,
    calls integer,
    period_seconds double precision DEFAULT 1 NOT NULL,
    saved double precision,
    saved_at double precision DEFAULT 0 NOT NULL,
    last_key text COLLATE pg_catalog."C",
    key_calls integer,
    requests_per_minute integer,
    tokens_per_minute integer,
    requests double precision,
    tokens double precision,
    spent_at double precision DEFAULT 0 NOT NULL,
    closed_until double precision DEFAULT 0 NOT NULL
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
    touched double precision NOT NULL,
    queue text DEFAULT ''::text NOT NULL,
    key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
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
INSERT INTO golden.entries VALUES (1, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"thread":"t","after":"","before":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":0.002328,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 4138369317);
INSERT INTO golden.entries VALUES (1, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.036088,"used":{"firings":1}}', NULL, 92731234);
INSERT INTO golden.entries VALUES (1, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.038327,"used":{"firings":1}}', NULL, 2953715927);
INSERT INTO golden.entries VALUES (1, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.040166,"used":{"firings":0}}', NULL, 1644604869);
INSERT INTO golden.entries VALUES (2, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":6.6e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 1030127049);
INSERT INTO golden.entries VALUES (2, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.005855,"used":{"firings":1}}', NULL, 3388369737);
INSERT INTO golden.entries VALUES (2, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.007511,"used":{"firings":1}}', NULL, 1350560890);
INSERT INTO golden.entries VALUES (2, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.00954,"used":{"firings":0}}', NULL, 986025514);
INSERT INTO golden.entries VALUES (3, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":7.3e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 2981378863);
INSERT INTO golden.entries VALUES (3, 1, 'step', '[[],"asks",[]]', '{"name":"fetch","value":"\u00fcn\u00efcode","at":0.002731,"used":{"firings":1}}', NULL, 1125092531);
INSERT INTO golden.entries VALUES (3, 2, 'asked', '[[],"asks",[]]', '{"id":"asks?n","text":"how many?","kind":"text","options":[],"at":0.004045,"used":{"firings":1}}', NULL, 341934492);
INSERT INTO golden.entries VALUES (3, 3, 'ended', '', '{"status":"paused","error":"AX404 1 open question(s): how many?","questions":[{"id":"asks?n","text":"how many?","kind":"text","options":[],"node":"asks"}],"at":0.005541,"used":{"firings":0}}', NULL, 2599544979);
INSERT INTO golden.entries VALUES (1, 4, 'resumed', '', '{"at":0.040217,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 1019713920);
INSERT INTO golden.entries VALUES (1, 5, 'answer', '', '{"id":"asks?n","value":5,"at":0.040278,"used":{"firings":0}}', NULL, 3619916532);
INSERT INTO golden.entries VALUES (1, 6, 'done', '[[],"asks",[]]', '{"delta":{},"sends":[["asks->@exit",{"answer":"\u00fcn\u00efcode 5"},null]],"at":0.045418,"used":{"firings":1}}', NULL, 1947300803);
INSERT INTO golden.entries VALUES (1, 7, 'ended', '', '{"status":"done","state":{},"output":{"answer":"\u00fcn\u00efcode 5"},"at":0.04578,"used":{"firings":1}}', NULL, 2125462848);
INSERT INTO golden.entries VALUES (4, 0, 'run', '', '{"graph":"golden","inputs":{},"values":{},"digest":"bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c","pins":{"axil-core":{"version":"0.1.0"}},"at":6.8e-05,"used":{"firings":0,"tokens":{},"cost":0.0,"cycles":{}}}', NULL, 2404655148);
INSERT INTO golden.entries VALUES (4, 1, 'ended', '', '{"status":"failed","error":"AX401 node \"asks\": ConnectionError: not today","failures":[{"node":"asks","error":"AX401 node \"asks\": ConnectionError: not today","place":"tests/test_golden.py:36 in fetched: raise ConnectionError(\"not today\")"}],"at":0.008222,"used":{"firings":1}}', NULL, 2241142711);
INSERT INTO golden.mail OVERRIDING SYSTEM VALUE VALUES (1, 3, 'asks?n', 'answer', '{"id":"asks?n","value":8}', NULL, false);
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (2, 'paused', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'paused', 21833948742427805, 0, 4, NULL, false, 1500000002, 1500000002, '', '');
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (1, 'done', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', 't', '', 'done', 1733488617179751577, 0, 8, NULL, false, 1500000001, 1500000001, '', '');
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (4, 'failed', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'failed', 1917850283585359793, 0, 2, NULL, false, 1500000004, 1500000004, '', '');
INSERT INTO golden.runs OVERRIDING SYSTEM VALUE VALUES (3, 'posted', 'golden', 'bce7479c152330865f3c06648f2507a6571382a6dbd3a70a8149005a97430e6c', '', '', 'paused', 1412041431267724739, 0, 4, 0, true, 1500000003, 1500000003, '', '');
INSERT INTO golden.version VALUES (3);
SELECT pg_catalog.setval('golden.holders_id_seq', 1, true);
SELECT pg_catalog.setval('golden.mail_id_seq', 1, true);
SELECT pg_catalog.setval('golden.runs_id_seq', 4, true);
ALTER TABLE ONLY golden.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (run, seq);
ALTER TABLE ONLY golden.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.mail
    ADD CONSTRAINT mail_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.once
    ADD CONSTRAINT once_pkey PRIMARY KEY (queue, name);
ALTER TABLE ONLY golden.queue_keys
    ADD CONSTRAINT queue_keys_pkey PRIMARY KEY (queue, key);
ALTER TABLE ONLY golden.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY golden.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY golden.runs
    ADD CONSTRAINT runs_run_key UNIQUE (run);
ALTER TABLE ONLY golden.sealing
    ADD CONSTRAINT sealing_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX mail_by_question ON golden.mail USING btree (run, question) WHERE (question IS NOT NULL);
CREATE INDEX mail_of_run ON golden.mail USING btree (run);
CREATE INDEX once_of_run ON golden.once USING btree (run);
CREATE INDEX runs_by_due ON golden.runs USING btree (due, id) WHERE ((holder = 0) AND (due IS NOT NULL));
CREATE INDEX runs_by_holder ON golden.runs USING btree (holder) WHERE (holder <> 0);
CREATE INDEX runs_by_loss ON golden.runs USING btree (id) WHERE ((holder = 0) AND (status = 'running'::text));
CREATE INDEX runs_by_name ON golden.runs USING btree (run text_pattern_ops);
CREATE INDEX runs_by_queue ON golden.runs USING btree (queue, key, touched, id) WHERE ((holder = 0) AND (due = (0)::double precision) AND (queue <> ''::text));
CREATE INDEX runs_by_queue_time ON golden.runs USING btree (due) WHERE ((holder = 0) AND (due > (0)::double precision) AND (queue <> ''::text));
CREATE INDEX runs_by_status ON golden.runs USING btree (status, touched, id) WHERE (holder = 0);
CREATE INDEX runs_by_thread ON golden.runs USING btree (thread, id) WHERE (thread <> ''::text);
CREATE INDEX runs_by_turn ON golden.runs USING btree ((
CASE
    WHEN (due = (0)::double precision) THEN touched
    ELSE due
END), id) WHERE ((holder = 0) AND (due IS NOT NULL) AND (queue = ''::text));
ALTER TABLE ONLY golden.entries
    ADD CONSTRAINT entries_run_fkey FOREIGN KEY (run) REFERENCES golden.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY golden.mail
    ADD CONSTRAINT mail_run_fkey FOREIGN KEY (run) REFERENCES golden.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY golden.once
    ADD CONSTRAINT once_run_fkey FOREIGN KEY (run) REFERENCES golden.runs(id) ON DELETE CASCADE;
