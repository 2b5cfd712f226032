"""The model's way: a loopback server that speaks server-sent events, the real worker with the real litellm, the loop.

The reference for streams is a bare asyncio client that reads the same answer from the same server and drops it.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from benchmarks.rows import Row
from oi_tui.engine.llm.base import ModelRequest
from oi_tui.engine.llm.worker_model import WorkerModel
from oi_tui.engine.settings import ModelSettings
from tests.openai_replies import text
from tests.openai_server import OpenAIServer

FIRST_TOKENS = 40


def words(count: int) -> str:
    """An answer of `count` tokens, sent as one delta each."""
    return "word " * count


def request(server: OpenAIServer) -> ModelRequest:
    settings = ModelSettings(model="openai/test", api_base=server.url, api_key="sk-benchmark")
    return ModelRequest([{"role": "user", "content": "go"}], settings)


async def first_and_whole(model: WorkerModel, server: OpenAIServer) -> tuple[float, float]:
    """Milliseconds from the server's first delta to ours, and seconds from the request to the end of the answer."""
    started = time.monotonic()
    first: float | None = None
    async for delta in model.stream(request(server)):
        if delta.text and first is None:
            first = time.monotonic()
    sent = server.requests[-1].first_delta_at
    if first is None or sent is None:
        raise RuntimeError("no answer")
    return (first - sent) * 1000, time.monotonic() - started


async def bare_drain(server: OpenAIServer) -> float:
    """Seconds for a client that only reads the answer."""
    address = urlsplit(server.url)
    body = b'{"model":"test","stream":true,"messages":[{"role":"user","content":"go"}]}'
    started = time.monotonic()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST {address.path}/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    while data := await reader.read(65536):
        if b"[DONE]" in data:
            break
    writer.close()
    return time.monotonic() - started


async def rows() -> AsyncIterator[Row]:
    model = WorkerModel()
    try:
        await model.warm()
        async with OpenAIServer(text(words(3), size=5)) as server:
            first, _ = await first_and_whole(model, server)
            yield Row("first token, first of a session, warm worker", first, "ms", None, None, "≤ 100 ms", first <= 100)
            times = [(await first_and_whole(model, server))[0] for _ in range(FIRST_TOKENS)]
            p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            yield Row("first token at the server → engine, p50", p50, "ms", None, None, "≤ 20 ms", p50 <= 20)
            yield Row("first token at the server → engine, p95", p95, "ms", None, None, "≤ 40 ms", p95 <= 40)
        small = await _flat_out(model, 2_000)
        yield Row("2,000 tokens flat out", small[0], "s", small[1], small[0] / small[1], "≤ 1.0 s", small[0] <= 1.0)
        large = await _flat_out(model, 10_000)
        ratio = large[0] / small[0]
        yield Row("10,000 tokens against 2,000", large[0], "s", small[0], ratio, "≤ 6x", ratio <= 6)
    finally:
        await model.aclose()


async def _flat_out(model: WorkerModel, count: int) -> tuple[float, float]:
    """Medians: ours and the bare client's, in alternation."""
    ours, bare = [], []
    async with OpenAIServer(text(words(count), size=5)) as server:
        for _ in range(5):
            ours.append((await first_and_whole(model, server))[1])
            bare.append(await bare_drain(server))
    return statistics.median(ours), statistics.median(bare)
