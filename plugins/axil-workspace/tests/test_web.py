"""Laws of reading the web: only where it is allowed, only what is public, only so much."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import ssl
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trustme

from axil_workspace import web
from axil_workspace.addresses import is_public
from axil_workspace.errors import AddressRefused, FetchFault, LimitExceeded, NotAllowed
from axil_workspace.web import Page, Web, _decoded

HERE = ("127.0.0.0/8", "::1")


BOMB = gzip.compress(bytes(64_000_000))
PACKED = {
    "gzip": gzip.compress(b"packed"),
    "deflate": zlib.compress(b"packed"),
    "deflate-raw": zlib.compress(b"packed")[2:-4],
    "gzip-bomb": BOMB,
    "gzip,gzip": gzip.compress(BOMB),
    "br": b"packed",
    "gzip-none": b"packed",
}


class Handler(BaseHTTPRequestHandler):
    """A small web."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        name = self.path.partition("?")[0]
        if name == "/page":
            self.answer(
                b"<title>T</title><body><h1>Hello</h1><script>x</script><p>a &lt; b",
                "text/html; charset=utf-8",
            )
        elif name == "/latin":
            self.answer(b"caf\xe9", "text/plain; charset=latin-1")
        elif name == "/large":
            self.answer(b"x" * 5000)
        elif name == "/blob":
            self.answer(b"\x89PNG\0\0", "image/png")
        elif name == "/turn":
            self.answer(b"", to="/turn")
        elif name == "/away":
            self.answer(b"", to=self.path.partition("?")[2])
        elif name == "/packed":
            how = self.path.partition("?")[2]
            self.answer(PACKED[how], "text/html", encoding=how.partition("-")[0])
        elif name == "/slow":
            self.server.over.wait(20)  # type: ignore[attr-defined]
        else:
            self.answer(b"nothing", status=404)

    def answer(
        self,
        data: bytes,
        media_type: str = "text/plain",
        *,
        status: int = 200,
        to: str = "",
        encoding: str = "",
    ) -> None:
        self.send_response(302 if to else status)
        self.send_header("Content-Type", media_type)
        if to:
            self.send_header("Location", to)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.over = [], threading.Event()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{made.server_port}"
    yield made
    made.over.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def get(use):
    def call(url: str, name: str = "http_get", **config: Any) -> str:
        return use(Web(Web.Config(**{"allow_networks": HERE, **config})), name, url=url)

    return call


def test_a_host_that_is_allowed_leads_to_no_other(server, tmp_path, called, firing_of):
    before = len(server.asked)
    firing = firing_of(tmp_path, "net:127.0.0.1")
    away = f"{server.url}/away?{server.url.replace('127.0.0.1', '127.0.0.2')}/page"
    here = Web(Web.Config(allow_networks=HERE))
    with pytest.raises(NotAllowed, match=r"AX876.*--allow net:127.0.0.2\."):
        asyncio.run(called(here, "http_get", {"url": away}, firing))
    assert len(server.asked) == before + 1
    assert asyncio.run(called(here, "http_get", {"url": f"{server.url}/page"}, firing))


def test_the_web_is_read_only_where_it_is_allowed(server, tmp_path, called, firing_of):
    before = len(server.asked)
    with pytest.raises(NotAllowed, match=r"AX876.*--allow net:127.0.0.1\."):
        asyncio.run(
            called(Web, "http_get", {"url": f"{server.url}/page"}, firing_of(tmp_path, "code"))
        )
    assert len(server.asked) == before


SPELLINGS = [
    *(
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "017700000001",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ),
    *("0.0.0.0", "[::]"),
]


@pytest.mark.parametrize("host", SPELLINGS)
def test_one_is_not_led_to_this_machine_however_it_is_spelled(server, use, host):
    before = len(server.asked)
    with pytest.raises((AddressRefused, FetchFault)):
        use(Web, "http_get", url=f"http://{host}:{server.server_port}/page")
    assert len(server.asked) == before


PRIVATE = [
    *(
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "::ffff:168.63.129.16",
        "fd00:ec2::254",
        "0.0.0.0",
        "127.255.255.254",
        "224.0.0.1",
        "240.0.0.1",
    ),
    *(
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "fec0::1",
        "2001:db8::1",
    ),
    *(
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
    ),
    *(
        "2002:a9fe:a9fe::1",
        "::127.0.0.1",
        "2001:0:7f00:1:0:0:ffff:fffe",
        "2606:4700::5efe:10.0.0.1",
        "2606:4700::200:5efe:7f00:1",
    ),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_known(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_what_is_public_is_known(address):
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://127.0.0.1/",
        "//example.org",
        "example.org",
        "http://",
        "http:///x",
        "http://user:secret@example.org/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org/\r\nHost: x",
        "http://example.org/ x",
        "http://example.org/" + "x" * 2000,
        "",
    ],
)
def test_what_is_no_address_is_not_asked(get, url):
    with pytest.raises((AddressRefused, FetchFault), match=r"AX87[78]"):
        get(url)


def test_a_page_is_read_as_it_is_and_as_its_text(server, get):
    assert "<h1>Hello</h1>" in get(f"{server.url}/page")
    assert get(f"{server.url}/page", "read_web_page") == "T\n\n# Hello\n\na < b"
    assert get(f"{server.url}/latin") == "café"
    assert ("/latin", f"127.0.0.1:{server.server_port}") in server.asked


def test_what_cannot_be_read_is_reported(server, get):
    with pytest.raises(FetchFault, match="status 404"):
        get(f"{server.url}/none")
    with pytest.raises(FetchFault, match="not text: its type is image/png"):
        get(f"{server.url}/blob")
    with pytest.raises(LimitExceeded, match="more than 1000 bytes"):
        get(f"{server.url}/large", page_bytes=1000)
    assert get(f"{server.url}/large", shown_characters=3) == "xxx\n[characters 0 to 3 of 5000]"
    with pytest.raises(LimitExceeded, match=r"longer than 0\.2 seconds"):
        get(f"{server.url}/slow", timeout_seconds=0.2)
    with pytest.raises(FetchFault, match="AX878"):
        get("http://127.0.0.1:1/")


def test_redirects_are_followed_so_often(server, get):
    assert get(f"{server.url}/away?/latin") == "café"
    # one that was given up may still be on its way
    before = [path for path, _ in server.asked].count("/turn")
    with pytest.raises(LimitExceeded, match="more than 3 times"):
        get(f"{server.url}/turn", redirects=3)
    assert [path for path, _ in server.asked].count("/turn") == before + 4


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "http://[::ffff:10.0.0.1]/",
    ],
)
def test_a_redirect_is_judged_like_the_first_address(server, get, target):
    with pytest.raises(AddressRefused, match="AX877"):
        get(f"{server.url}/away?{target}")


def test_a_name_is_looked_up_once_and_what_was_checked_is_asked(server, firing, called):
    """A name that means something else the second time finds no second time."""
    looked: list[str] = []

    class Changing(Web):
        async def _look(host: str, port: int) -> list[str]:  # it is a static method
            looked.append(host)
            return ["127.0.0.1"] if len(looked) == 1 else ["10.0.0.1"]

        resolve = staticmethod(_look)

    tool = Changing(Web.Config(allow_networks=HERE))
    url = f"http://example.test:{server.server_port}/latin"
    assert asyncio.run(called(tool, "http_get", {"url": url}, firing)) == "café"
    assert looked == ["example.test"]
    assert ("/latin", f"example.test:{server.server_port}") in server.asked
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        asyncio.run(called(tool, "http_get", {"url": url}, firing))


def test_one_bad_address_among_good_ones_is_enough(firing, called):
    class Mixed(Web):
        async def _look(host: str, port: int) -> list[str]:  # it is a static method
            return ["93.184.216.34", "192.168.0.1"]

        resolve = staticmethod(_look)

    with pytest.raises(AddressRefused, match=r"192\.168\.0\.1"):
        asyncio.run(called(Mixed, "http_get", {"url": "http://example.test/"}, firing))


def test_only_the_named_hosts_are_read(server, get):
    for url in (f"{server.url}/latin", "http://example.org.evil.test/", "http://badexample.org/"):
        with pytest.raises(AddressRefused, match="not among the allowed hosts"):
            get(url, hosts=["example.org"])
    assert get(f"{server.url}/latin", hosts=["127.0.0.1"]) == "café"


def test_proxies_of_the_environment_are_not_used(server, get, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert get(f"{server.url}/latin") == "café"


@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("https://example.test:PORT/latin", True),
        ("https://other.test:PORT/latin", False),
        ("https://example.test:PORT/away?https://example.test:PORT/latin", True),
        # same address, another name
        ("https://example.test:PORT/away?https://other.test:PORT/latin", False),
    ],
)
def test_a_certificate_is_held_against_the_name_and_not_the_address(
    firing, called, monkeypatch, tmp_path, url, trusted
):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def ours(*_: Any, **__: Any) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))

    # it asks the system whom to trust; httpx2 2.10 has it from truststore
    monkeypatch.setattr("httpcore2.default_ssl_context", ours)
    monkeypatch.setattr("truststore.SSLContext", ours)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("example.test", "127.0.0.1").configure_cert(context)
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.handle_error = [], lambda *_: None
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()

    class Here(Web):
        async def _look(host: str, port: int) -> list[str]:  # it is a static method
            return ["127.0.0.1"]

        resolve = staticmethod(_look)

    try:
        url = url.replace("PORT", str(made.server_port))
        asked = called(Here(Web.Config(allow_networks=HERE)), "http_get", {"url": url}, firing)
        if trusted:
            assert asyncio.run(asked) == "café"
        else:
            with pytest.raises(FetchFault, match=r"AX878.*certificate"):
                asyncio.run(asked)
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


# --------------------------------------------------------------------------------- hostile answers


@pytest.mark.parametrize("how", ["gzip", "deflate", "deflate-raw"])
def test_a_page_may_be_compressed_once(server, get, how):
    assert get(f"{server.url}/packed?{how}") == "packed"


@pytest.mark.parametrize("how", ["gzip,gzip", "br", "gzip-none"])
def test_what_cannot_be_counted_while_it_is_unpacked_is_refused(server, get, how):
    with pytest.raises(FetchFault, match="AX878"):
        get(f"{server.url}/packed?{how}")


def test_unpacking_stops_at_the_limit(server, get):
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match=r"AX878.*more than 10000 bytes"):
            get(f"{server.url}/packed?gzip-bomb", page_bytes=10_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


HOSTILE_PAGES = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (200, 200))
from axil_workspace.page import text_of_page
for start, rest in (
    ("", "<a "), ("", "<svg>"), ("<svg>" * 100_000, "</noscript>"), ("", '<a b="'), ("", "<!--"),
    ("", "<script>"), ("<script>", "</script"), ("<title>", "</titl"), ("&#", "9"), ("&#x", "f"),
    ("", "&"), ("<a ", "= "), ("", "<"), ("", "</"), ("<p>", " "), ("", "<a \\">'"), ("", "<?"),
    ("", "<!"), ("", "<div>"), ("", "<td></td>"), ("", "<!-->x"), ("<a b='", '"'),
    ("", "<a href=x>y"), ("", "<ol><li>"), ("<pre>", "a b\\n"), ("", "<div hidden><div>"),
    ("<a href='", " a='b"), ("<div hidden", " a="), ("<a href=", "a "), ("", "<blockquote>x"),
    ("", "<ul><li>x"), ("", "<table><tr><td>"), ("", "<a><b><p>x"), ("", "<p>"),
):
    text_of_page(start + rest * (300_000 // len(rest)))
print("read")
"""


def test_a_page_is_read_in_time_that_grows_with_its_size():
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE_PAGES], capture_output=True, text=True, timeout=500
    )
    assert (done.stdout, done.stderr) == ("read\n", "")


def test_other_runs_go_on_while_a_page_is_read(server, called, firing, monkeypatch):
    went_on = threading.Event()
    tools = Web(Web.Config(allow_networks=HERE))

    async def main() -> str:
        loop = asyncio.get_running_loop()

        def read(page: str, url: str) -> str:
            loop.call_soon_threadsafe(went_on.set)
            return str(went_on.wait(60))

        monkeypatch.setattr(web, "text_of_page", read)
        return await called(tools, "read_web_page", {"url": f"{server.url}/page"}, firing)

    assert asyncio.run(main()) == "True"


def test_reading_a_page_takes_no_longer_than_a_page_may_take(server, get, monkeypatch):
    over = threading.Event()

    def read(page: str, url: str) -> str:
        return str(over.wait(60))

    monkeypatch.setattr(web, "text_of_page", read)
    threading.Timer(0.5, over.set).start()  # the event loop waits for its threads
    with pytest.raises(LimitExceeded, match=r"AX878.*longer than 0\.2 seconds"):
        get(f"{server.url}/page", "read_web_page", timeout_seconds=0.2)


@pytest.mark.parametrize("charset", ["idna", "punycode", "undefined", "rot13", "no-such", "x\0"])
def test_an_encoding_that_no_page_is_in_is_taken_for_utf_8(charset):
    page = Page(url="", status=200, media_type="", charset=charset, data=bytearray("é".encode()))
    assert _decoded(page) == "é"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<head><title>a</title></head><body>b", "a\n\nb"),
        ("<p>1 < 2 <!-- <p>no --> &lt;b&gt;", "1 < 2 <b>"),
        ("<svg><text>no</text></svg>a<textarea><b></textarea>", "a <b>"),
        ("<template>no</template><noscript>no</noscript><script>no</script>yes", "yes"),
        ("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>", "| a |\n| --- |\n| 1 |"),
        ("<hr>a<hr>b", "---\n\na\n\n---\n\nb"),
        ("a<!-->b", "ab"),
        ("&#99999999999;", "\ufffd"),
        ('a <a href="b?c&amp;d">e</a>.', "a [e](http://h/b?c&d)."),
        ('<a href="/a">b<a href="//i/c">d', "[b](http://h/a)[d](http://i/c)"),
        ('<img src="a.png" alt="a fern">', "![a fern](http://h/a.png)"),
        ('<img src="data:image/png;base64,AAAA" alt="a fern">', "a fern"),
        ("<pre>if a:\n\n  b  c</pre>d <code>e f</code>", "```\nif a:\n\n  b  c\n```\n\nd `e f`"),
        ("<ol><li>a<ul><li>b</ul><li>c</ol>d", "1. a\n   - b\n2. c\n\nd"),
        ("<nav><a href=x>menu</a></nav><div hidden><div>a</div>b</div>c", "c"),
        ("<span style='display: none'>a</span><p hidden>b</p><p>c", "c"),
        ("<p style='visibility:hidden'>a</p><p style='font-size:0'>b</p><p>c", "c"),
        ("<b aria-hidden='true'>a</b>c<input type=hidden value=b>", "c"),
    ],
)
def test_a_pages_text_is_what_a_reader_sees(page, text):
    assert web.text_of_page(page, url="http://h/") == text
