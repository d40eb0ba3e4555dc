"""The clients of a soak: they hand runs in, decide, signal and cancel them at any server, until they have ended."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx2

from support.soak.depot import PARTS
from support.soak.world import World

WITHIN_S = 20.0
"""How long a client waits for an answer before it asks another server."""
PAUSE_S = 0.5
ENDS = ("completed", "failed", "cancelled")
KINDS = ("parcel", "parcel", "parcel", "order", "call")
TAKEN = (200, 201, 202)
AWAY = (429, 502, 503, 504)


@dataclass
class Run:
    """A run that a server has acknowledged, what its client wants of it, and its last status."""

    run: str
    kind: str
    name: str
    denied: bool = False
    cancel_after_s: float | None = None
    status: str = "pending"
    decided: Counter[str] = field(default_factory=Counter)
    view: Any = None


@dataclass
class Tally:
    """What the clients have seen."""

    runs: dict[str, Run] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    """The names of runs of whose submission no answer came, and which had no key."""
    unreached: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass
class Clients:
    """The clients of a world, until `is_over`; what they have begun they go on with until it is at its end."""

    world: World
    chance: random.Random
    tally: Tally = field(default_factory=Tally)
    is_over: bool = False
    _count: int = 0

    async def work(self, count: int) -> None:
        """Let so many clients hand in one run after the other, until it is over and their last runs have ended."""
        async with httpx2.AsyncClient(timeout=WITHIN_S) as self._client, asyncio.TaskGroup() as all_:
            for _ in range(count):
                all_.create_task(self._hand_in_on())

    async def _hand_in_on(self) -> None:
        while not self.is_over:
            self._count += 1
            name, kind = f"r{self._count}", self.chance.choice(KINDS)
            run = await self._submit(kind, name, key=name if self.chance.random() < 0.7 else None)
            if run is None:
                self.tally.unsure.append(name)
                continue
            made = Run(run, kind, name, denied=self.chance.random() < 0.2)
            if self.chance.random() < 0.2:
                made.cancel_after_s = self.chance.uniform(0, 8)
            self.tally.runs[run] = made
            await self._bring_to_its_end(made)

    async def _submit(self, kind: str, name: str, key: str | None) -> str | None:
        """The id of a run that was taken; None where nobody can say whether one without a key was."""
        body = {"external": {"name": name, **({"parts": PARTS} if kind == "parcel" else {})}}
        headers = {} if key is None else {"Idempotency-Key": key}
        while True:
            answer = await self._ask("POST", f"/workflows/{kind}/runs?wait=false", json=body, headers=headers)
            if answer is not None and answer.status_code in TAKEN:
                return str(answer.json()["run_id"])
            if answer is not None and answer.status_code not in (*AWAY, 409, 500):
                self.tally.faults.append(f"{name} is refused: {answer.status_code} {answer.text}")
                return None
            if key is None and (answer is None or answer.status_code not in AWAY):
                return None
            await asyncio.sleep(PAUSE_S)

    async def _bring_to_its_end(self, run: Run) -> None:
        began = monotonic()
        while run.status not in ENDS:
            if run.cancel_after_s is not None and monotonic() - began > run.cancel_after_s:
                await self._ask("POST", f"/runs/{run.run}/cancel")
            await self._look(run)
            if run.status == "waiting":
                await self._answer_what_waits(run)
            elif run.status == "paused":
                run.decided["resumed"] += 1
                await self._ask("POST", f"/runs/{run.run}/resume?wait=false")
            await asyncio.sleep(PAUSE_S)

    async def _look(self, run: Run) -> None:
        answer = await self._ask("GET", f"/runs/{run.run}")
        if answer is None or answer.status_code in AWAY:
            return
        if answer.status_code != 200:
            fault = f"{run.run} ({run.kind} {run.name}) is not shown: {answer.status_code} {answer.text[:300]}"
            if fault not in self.tally.faults:
                self.tally.faults.append(fault)
            return
        run.view = answer.json()
        run.status = run.view["status"]

    async def _answer_what_waits(self, run: Run) -> None:
        for waits in run.view["waiting"]:
            path = f"/runs/{run.run}"
            if waits["reason"] == "awaiting_event":
                if waits.get("signal") and run.decided["signalled"] < 5:
                    run.decided["signalled"] += 1
                    await self._ask("POST", f"{path}/signals/go", json={"data": 1})
                continue
            if waits["reason"] == "in_doubt":
                decision = self.chance.choice(["skip", "retry"])
            else:
                decision = "deny" if run.denied else "approve"
            run.decided[decision] += 1
            at = {"strand": waits["strand"], "n": waits["n"]}
            answer = await self._ask("POST", f"{path}/decide?wait=false", json={"decision": decision, "at": at})
            if answer is not None and answer.status_code not in (*TAKEN, *AWAY, 409):
                self.tally.faults.append(f"{decision} of {run.run}: {answer.status_code} {answer.text[:300]}")

    async def _ask(self, method: str, path: str, **about: Any) -> httpx2.Response | None:
        """What any server answers; None where it does not."""
        if not (urls := self.world.urls()):
            return None
        with suppress(httpx2.HTTPError):
            answer = await self._client.request(method, self.chance.choice(urls) + path, **about)
            if answer.status_code >= 500 and answer.status_code not in AWAY:
                self.tally.refused[f"{method} {answer.status_code} {answer.text[:200]}"] += 1
            return answer
        self.tally.unreached += 1
        return None
