"""The vLLM process that we own: real processes, and with the marker a real vLLM."""

import json
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from pydantic import JsonValue

from airjudge import server
from airjudge.errors import ProfileError, ServerFailed
from airjudge.server import Server
from airjudge.server.process import answers, installed_distribution


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def healthy_port() -> Iterator[int]:
    """The port of an HTTP server in this process that answers 200 to everything."""
    with HTTPServer(("127.0.0.1", 0), Healthy) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http.server_port
        http.shutdown()
        thread.join()


def test_a_stranger_who_answers_on_the_port_is_not_taken_for_our_server(healthy_port: int) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as ours:
        assert not answers(ours.pid, healthy_port)
        ours.kill()


def test_the_server_is_ready_once_a_child_of_the_supervisor_answers() -> None:
    child = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    child += "s.RequestHandlerClass.do_GET = lambda r: (r.send_response(200), r.end_headers()); "
    child += "print(s.server_port, flush=True); s.serve_forever()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ours:
        assert ours.stdout is not None
        assert answers(ours.pid, int(ours.stdout.readline()))
        for process in psutil.Process(ours.pid).children(recursive=True):
            process.kill()


def test_nobody_listening_is_no_answer() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert not answers(psutil.Process().pid, port)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ProfileError), server.serve("no-such-judge"):
        pytest.fail("nothing can be served")


@pytest.mark.skipif(installed_distribution() is None, reason="vLLM is not installed")
def test_a_taken_port_is_refused_before_anything_starts(healthy_port: int) -> None:
    with (
        pytest.raises(ServerFailed, match=str(healthy_port)) as refused,
        server.serve("smollm2-135m", port=healthy_port),
    ):
        pytest.fail("the port is taken")
    assert "--port" in refused.value.hint


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 9)", "exit code 137")],
)
def test_a_server_that_dies_later_is_told_with_its_last_words(tmp_path: Path, program: str, code: str) -> None:
    log = tmp_path / "x.log"
    log.write_text("(EngineCore pid=7) ERROR 11-30 17:17:00 [core.py:1510] ValueError: the sky fell\n")
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        died = Server(
            base_url="http://127.0.0.1:1/v1", model="m", api_key="k", profile="p", digest="", pid=process.pid, log=log
        )
        with pytest.raises(ServerFailed, match="the sky fell") as told:
            server.watch(died)
    assert code in str(told.value)


def ask(running: Server, path: str, body: JsonValue = None, *, key: str | None = None) -> tuple[int, str]:
    """Status and text of one request to a server, with its own key unless another is given."""
    request = Request(
        running.base_url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {running.api_key if key is None else key}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urlopen(request, timeout=120) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def chat(running: Server, response_format: JsonValue, text: str = "Is snow white?") -> tuple[int, str]:
    body: JsonValue = {
        "model": running.model,
        "messages": [{"role": "user", "content": text}],
        "max_completion_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 5,
        "response_format": response_format,
    }
    return ask(running, "/chat/completions", body)


BINARY: JsonValue = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "schema": {"type": "integer", "enum": [0, 1]}},
}


@pytest.mark.server
def test_the_api_wants_the_key(smollm_server: Server) -> None:
    assert ask(smollm_server, "/models")[0] == 200
    assert ask(smollm_server, "/models", key="another")[0] == 401
    assert not [process for process in family(smollm_server) if smollm_server.api_key in str(process.cmdline())]


@pytest.mark.server
def test_every_process_of_the_server_listens_on_loopback_only(smollm_server: Server) -> None:
    listening = [
        one.laddr.ip
        for process in family(smollm_server)
        for one in process.net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.server
def test_outlines_is_the_backend_as_its_refusal_of_json_object_shows(smollm_server: Server) -> None:
    status, text = chat(smollm_server, {"type": "json_object"})
    assert status == 400
    assert "outlines" in text.lower()


@pytest.mark.server
def test_a_reply_obeys_its_schema_and_the_prefix_is_cached_in_small_blocks(smollm_server: Server) -> None:
    text = "Snow is white. " * 20
    replies = [json.loads(chat(smollm_server, BINARY, text)[1]) for _ in range(2)]
    assert {reply["choices"][0]["message"]["content"] for reply in replies} <= {"0", "1"}
    usage = replies[1]["usage"]
    # All whole blocks of 32 tokens but at least the last token, which is computed for its logits.
    whole = (usage["prompt_tokens"] - 1) // 32 * 32
    assert usage["prompt_tokens_details"]["cached_tokens"] == whole > 0


@pytest.mark.server
def test_prompts_are_not_logged_and_the_log_is_private(smollm_server: Server) -> None:
    chat(smollm_server, BINARY, "Xylophones from Ulaanbaatar")
    log = smollm_server.log.read_text(encoding="utf-8")
    assert "Xylophones" not in log
    assert smollm_server.api_key not in log
    assert stat.S_IMODE(smollm_server.log.stat().st_mode) == 0o600


@pytest.mark.server
def test_the_server_process_has_no_secret_of_ours_but_its_key(smollm_server: Server) -> None:
    for process in family(smollm_server):
        assert not [name for name in process.environ() if name.endswith(("_TOKEN", "_SECRET", "_proxy", "_PROXY"))]


@pytest.mark.server
def test_a_private_server_is_not_offered_to_others(smollm_server: Server) -> None:
    found = server.running(smollm_server.profile)
    assert found is None or found.pid != smollm_server.pid


def family(running: Server) -> list[psutil.Process]:
    supervisor = psutil.Process(running.pid)
    return [supervisor, *supervisor.children(recursive=True)]
