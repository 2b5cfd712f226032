"""What the first run finds: keys in the environment and servers on this machine, each asked side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from oi_tui.engine.llm.local import Found, FoundKind, Server, in_environment, look_around, usual_servers

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[str]:
    """A server on a free loopback port that has read the request's head when `answer` is called. Yields its origin."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()


def body(data: object, *, status: str = "200 OK", chunked: bool = False, length: bool = True) -> Answer:
    text = json.dumps(data).encode() if not isinstance(data, bytes) else data

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        if chunked:
            middle = len(text) // 2
            pieces = [text[:middle], text[middle:], b""]
            sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
            writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + sent)
        else:
            announced = f"Content-Length: {len(text)}\r\n" if length else ""
            writer.write(head.encode() + announced.encode() + b"\r\n" + text)
        await writer.drain()

    return answer


def ollama(origin: str) -> Server:
    return Server(FoundKind.OLLAMA, "Ollama", origin, "/api/tags")


def lm_studio(origin: str) -> Server:
    return Server(FoundKind.LM_STUDIO, "LM Studio", origin, "/v1/models")


async def found_by(*servers: Server, patience: float = 20.0) -> list[Found]:
    return [found async for found in look_around({}, servers=servers, patience=patience)]


OLLAMA_TAGS = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}, {"name": "nomic-embed-text:latest"}]}
OPENAI_MODELS = {"object": "list", "data": [{"id": "qwen2.5-coder-7b", "object": "model"}]}


async def test_ollama_offers_its_models_but_not_the_ones_for_embedding() -> None:
    async with listening(body(OLLAMA_TAGS)) as origin:
        (found,) = await found_by(ollama(origin))
    assert (found.title, found.model, found.api_base) == ("Ollama: qwen3:8b", "ollama_chat/qwen3:8b", origin)
    assert found.settings == {"llm.model": "ollama_chat/qwen3:8b", "llm.api_base": origin}


@pytest.mark.parametrize("how", [{}, {"chunked": True}, {"length": False}])
async def test_an_openai_compatible_server_is_read_however_it_sends_its_answer(how: dict[str, bool]) -> None:
    async with listening(body(OPENAI_MODELS, **how)) as origin:
        (found,) = await found_by(lm_studio(origin))
    assert (found.model, found.api_base) == ("openai/qwen2.5-coder-7b", f"{origin}/v1")


@pytest.mark.parametrize(
    "answer",
    [
        body({"error": "no"}, status="401 Unauthorized"),
        body(b"<html>a home page</html>"),
        body([1, 2, 3]),
        body({"data": "models"}),
        body({"data": [{"id": 7}, {"id": ""}, "x", {"id": "y" * 300}]}),
        body(b"[" * 100_000),
        body(b"x" * (3 << 20), length=False),
        body(b"\xff\xfe\x00"),
    ],
)
async def test_what_is_no_model_server_is_passed_over_in_silence(answer: Answer) -> None:
    async with listening(answer) as origin:
        assert await found_by(lm_studio(origin)) == []


async def test_a_server_that_accepts_and_says_nothing_does_not_hold_up_the_others() -> None:
    release = asyncio.Event()

    async def mute(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await release.wait()

    async with listening(mute) as silent, listening(body(OLLAMA_TAGS)) as origin:
        arrived = []
        async for found in look_around({}, servers=[lm_studio(silent), ollama(origin)], patience=0.5):
            arrived.append(found.kind)
            assert not release.is_set()
    release.set()
    assert arrived == [FoundKind.OLLAMA]


async def test_results_come_as_they_arrive_and_the_rest_can_be_left_behind() -> None:
    release = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()

    async with listening(late) as slow, listening(body(OLLAMA_TAGS)) as origin:
        around = look_around({"MISTRAL_API_KEY": "k"}, servers=[lm_studio(slow), ollama(origin)], patience=60.0)
        assert (await anext(around)).kind is FoundKind.ENVIRONMENT
        assert (await anext(around)).kind is FoundKind.OLLAMA
        await around.aclose()
        release.set()


async def test_a_port_where_nobody_listens_is_no_error() -> None:
    async with listening(body({})) as origin:
        pass
    assert await found_by(ollama(origin)) == []


def test_each_provider_whose_key_is_set_suggests_one_model() -> None:
    found = in_environment(
        {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "k", "GROQ_API_KEY": " "}
    )
    assert [f.env_var for f in found] == ["ANTHROPIC_API_KEY", "GEMINI_API_KEY"]
    assert all("k" not in (f.api_base or "") for f in found)


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999"),
        ("gpu-box", "http://gpu-box:11434"),
        ("https://ollama.example.org", "https://ollama.example.org:443"),
        ("http://[::1]:99/", "http://[::1]:99"),
        ("box:port", "http://box:11434"),
    ],
)
def test_ollama_is_looked_for_where_its_own_variable_says(written: str, origin: str) -> None:
    assert usual_servers({"OLLAMA_HOST": written})[0].origin == origin


def test_nothing_but_this_machine_is_asked_by_default() -> None:
    assert {server.origin.rpartition(":")[0] for server in usual_servers({})} == {"http://127.0.0.1"}
