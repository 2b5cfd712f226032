"""Models within reach: keys in the environment, and servers that answer on this machine.

Nothing but loopback is contacted, and the host that the user named in `OLLAMA_HOST`. All servers are asked side by
side, each for `PATIENCE` seconds at most; results come as they arrive.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 0.7
"""Seconds for one server, from connecting to the last byte."""
MOST_BYTES = 1 << 20
MOST_MODELS = 50


class FoundKind(StrEnum):
    ENVIRONMENT = auto()
    """A provider's key is in the environment."""
    OLLAMA = auto()
    LM_STUDIO = auto()
    JAN = auto()
    LLAMAFILE = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """A model that could be used right now. `title` is for people; names from servers are foreign text."""

    kind: FoundKind
    title: str
    model: str
    api_base: str | None = None
    env_var: str | None = None
    """The variable that holds the key, for `ENVIRONMENT`."""

    @property
    def settings(self) -> dict[str, str | None]:
        """What to save in a profile to use it."""
        return {"llm.model": self.model, "llm.api_base": self.api_base}


PROVIDERS: tuple[tuple[str, str, str], ...] = (
    ("OPENAI_API_KEY", "OpenAI", "openai/gpt-5.4"),
    ("ANTHROPIC_API_KEY", "Anthropic", "anthropic/claude-sonnet-5-5"),
    ("GEMINI_API_KEY", "Google Gemini", "gemini/gemini-3.8-flash"),
    ("GOOGLE_API_KEY", "Google Gemini", "gemini/gemini-3.8-flash"),
    ("MISTRAL_API_KEY", "Mistral", "mistral/mistral-medium-latest"),
    ("GROQ_API_KEY", "Groq", "groq/openai/gpt-oss-120b"),
    ("DEEPSEEK_API_KEY", "DeepSeek", "deepseek/deepseek-v4-pro"),
    ("XAI_API_KEY", "xAI", "xai/grok-4.20"),
    ("OPENROUTER_API_KEY", "OpenRouter", "openrouter/openai/gpt-5.4"),
    ("TOGETHERAI_API_KEY", "Together AI", "together_ai/zai-org/GLM-5.3"),
    ("CEREBRAS_API_KEY", "Cerebras", "cerebras/gpt-oss-120b"),
)
"""Variables that LiteLLM reads, and a model of each provider that can write code."""


def in_environment(environ: Mapping[str, str]) -> list[Found]:
    """One suggestion for each provider whose key is set. Contacts nobody and reads no key but for being there."""
    found: list[Found] = []
    for variable, provider, model in PROVIDERS:
        if environ.get(variable, "").strip() and all(f.model != model for f in found):
            found.append(Found(FoundKind.ENVIRONMENT, f"{provider}: {model}", model, env_var=variable))
    return found


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of local server: where it listens, what to ask it, and how LiteLLM reaches it."""

    kind: FoundKind
    title: str
    origin: str
    """Scheme, host and port."""
    path: str

    @property
    def is_ollama(self) -> bool:
        return self.kind is FoundKind.OLLAMA

    @property
    def api_base(self) -> str:
        return self.origin if self.is_ollama else f"{self.origin}/v1"


def usual_servers(environ: Mapping[str, str]) -> list[Server]:
    """The servers to look for on this machine."""
    return [
        Server(FoundKind.OLLAMA, "Ollama", _ollama_origin(environ.get("OLLAMA_HOST", "")), "/api/tags"),
        Server(FoundKind.LM_STUDIO, "LM Studio", "http://127.0.0.1:1234", "/v1/models"),
        Server(FoundKind.JAN, "Jan", "http://127.0.0.1:1337", "/v1/models"),
        Server(FoundKind.LLAMAFILE, "llamafile", "http://127.0.0.1:8080", "/v1/models"),
    ]


def _ollama_origin(written: str) -> str:
    """What `OLLAMA_HOST` means as scheme://host:port; a listening address such as 0.0.0.0 means this machine."""
    written = written.strip() or "127.0.0.1"
    parts = urlsplit(written if "//" in written else f"http://{written}")
    try:
        port = parts.port
    except ValueError:
        port = None
    host = parts.hostname or "127.0.0.1"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    default = {"https": 443, "http": 11434}.get(parts.scheme, 11434)
    return f"{parts.scheme if parts.scheme == 'https' else 'http'}://{host}:{port or default}"


async def look_around(
    environ: Mapping[str, str] | None = None, *, servers: Sequence[Server] | None = None, patience: float = PATIENCE
) -> AsyncGenerator[Found, None]:
    """Everything found: the environment's at once, then each server's models as it answers. Never raises for a server.

    The order of the servers is the order of their answers. Takes `patience` seconds at most.
    """
    environ = os.environ if environ is None else environ
    for found in in_environment(environ):
        yield found
    asked = usual_servers(environ) if servers is None else servers
    tasks = [asyncio.create_task(_models_of(server, patience)) for server in asked]
    try:
        for answer in asyncio.as_completed(tasks):
            for found in await answer:
                yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def find_all(environ: Mapping[str, str] | None = None) -> list[Found]:
    """Everything found, in one list."""
    return [found async for found in look_around(environ)]


async def _models_of(server: Server, patience: float) -> list[Found]:
    """The models of one server; none if it is not there, is something else, or does not answer in time."""
    try:
        async with asyncio.timeout(patience):
            answer = json.loads(await _get(server))
    except (OSError, TimeoutError, ValueError, RecursionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return []
    return [_found(server, name) for name in _model_names(answer)[:MOST_MODELS]]


def _found(server: Server, name: str) -> Found:
    model = f"ollama_chat/{name}" if server.is_ollama else f"openai/{name}"
    return Found(server.kind, f"{server.title}: {name}", model, server.api_base)


def _model_names(answer: Any) -> list[str]:
    """Names out of Ollama's `models` or the OpenAI-compatible `data`; embedding models are left out."""
    if not isinstance(answer, dict):
        return []
    rows = answer.get("models") if isinstance(answer.get("models"), list) else answer.get("data")
    names = [row.get("model") or row.get("name") or row.get("id") for row in rows or () if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str) and 0 < len(name) <= 200 and "embed" not in name.lower()]


async def _get(server: Server) -> bytes:
    """The body of one GET over HTTP/1.0, where the end of the connection ends it."""
    parts = urlsplit(server.origin)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    reader, writer = await asyncio.open_connection(host, port, ssl=parts.scheme == "https" or None, limit=MOST_BYTES)
    try:
        request = f"GET {server.path} HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n"
        writer.write(request.encode("latin-1"))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] != [b"200"]:
            raise ValueError("not a model server")
        return await _body(head.lower(), reader)
    finally:
        writer.transport.abort()  # closing politely may take longer than our patience


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    """The body as its headers announce it. Some servers answer HTTP/1.0 with chunks or keep the connection open."""
    if b"transfer-encoding: chunked" in head:
        parts: list[bytes] = []
        while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
            if size + sum(map(len, parts)) > MOST_BYTES:
                raise ValueError("too long")
            parts.append(await reader.readexactly(size))
            await reader.readline()
        return b"".join(parts)
    length = next(
        (line.partition(b":")[2] for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None
    )
    if length is not None:
        if int(length) > MOST_BYTES:
            raise ValueError("too long")
        return await reader.readexactly(int(length))
    body = await reader.read(MOST_BYTES)
    while chunk := await reader.read(MOST_BYTES):
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError("too long")
    return body
