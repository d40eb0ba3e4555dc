"""AgentCoreOperator: an agent as a task of Airflow, which goes on where an attempt before it has ended."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, Literal

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import BaseOperator

from agent_core.journal.control import Decisions, calls_for_person, due_of
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.node import AttemptStop, NodeContext, list_waiting_sync
from agent_core.outputs import Json
from agent_core.run.agent_output import AgentOutput
from agent_core.run.secrets import Secrets
from engine_shim.plugins.airflow.ask import ask_in_airflow, await_answer
from engine_shim.plugins.airflow.attempts import Attempt, find_attempt, stop_if_given_up
from engine_shim.plugins.airflow.hooks import AgentModelHook, AgentStoreHook
from engine_shim.plugins.airflow.link import RunLink
from engine_shim.plugins.airflow.questions import make_question, read_answer
from engine_shim.plugins.airflow.trigger import RunTrigger, open_store
from engine_shim.plugins.attempt import deadline_within, execute_beside
from engine_shim.plugins.decided import FINAL_ERRORS, give_output
from utools.registry import ToolRegistry
from utools.tool import Tool

GIVEN: Final = ("status", "final_answer", "finish_reason", "run_id", "usage")
"""What of the outputs is in XCom; the journal has the others."""
RESUME: Final = "resume"


class AgentCoreOperator(BaseOperator):  # type: ignore[misc,unused-ignore]  # without Airflow, its classes are Any
    """Run an agent; in XCom are `final_answer`, `finish_reason`, `run_id`, `status` and `usage`, each by its name too.

    `config` is what the node may be told but its `prompt`; both are templates. `tools` are all that it may allow, and
    `model` or `model_conn_id` (a connection of type `agent_core_model`) answers in place of the config's `model`. The
    run is recorded in `journal`, a file that all workers reach or the URL of a PostgreSQL database, else in the store
    of `store_conn_id` (type `agent_core_store`). A retry goes on with the run as it began, within the same budgets; a
    task that was cleared after its run had ended begins another run.

    A call that waits for a person holds no worker: `decide_in="airflow"` asks on Airflow's page of required actions,
    `assigned_users` only, for `response_timeout` at most; `"store"` waits for a decision by the page, the API or
    `agent_core.node.decide`, and looks for it every `poll_interval` seconds. A run that failed, and what no retry
    mends, fails the task at once.
    """

    template_fields: Sequence[str] = ("prompt", "config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}
    operator_extra_links = (RunLink(),)
    shallow_copy_attrs: Sequence[str] = ("tools", "model")
    ui_color = "#e8e3f3"

    def __init__(
        self,
        *,
        prompt: str,
        config: Mapping[str, Any],
        tools: ToolRegistry | Iterable[Tool] = (),
        model: ModelClient | str | None = None,
        model_conn_id: str | None = None,
        journal: str | None = None,
        store_conn_id: str = AgentStoreHook.default_conn_name,
        secrets: Sequence[str] = (),
        decide_in: Literal["airflow", "store"] = "airflow",
        response_timeout: timedelta | None = None,
        assigned_users: Sequence[Mapping[str, str]] = (),
        poll_interval: float = 5.0,
        **options: Any,
    ) -> None:
        super().__init__(**{"multiple_outputs": True, **options})
        self.prompt, self.config, self.tools, self.model = prompt, config, tools, model
        self.model_conn_id, self.journal, self.store_conn_id = model_conn_id, journal, store_conn_id
        self.secrets, self.decide_in, self.response_timeout = secrets, decide_in, response_timeout
        self.assigned_users, self.poll_interval = assigned_users, poll_interval
        self.agent_run_id: str | None = None
        self._kill: Callable[[], object] = lambda: None

    def execute(self, context: Any) -> Json:
        """Run the agent, or go on with it where an attempt before this one has ended."""
        return self._attempt(context["ti"])

    def resume(self, context: Any, event: Mapping[str, Any] | None = None, asked: Sequence[Any] = ()) -> Json:
        """Go on with a run that waited: with the answer of a person to what was `asked`, as (strand, n), or by what the
        store says."""
        answer = dict(event or {})
        if "error" in answer:
            raise AirflowFailException(f"nobody decided about the calls that wait: {answer['error']}")
        return self._attempt(context["ti"], answer if "chosen_options" in answer else None, asked, is_resumed=True)

    def on_kill(self) -> None:
        """Cancel the run, where Airflow wants the task to end; let it go where another worker goes on with it."""
        self._kill()

    def _attempt(
        self, ti: Any, answer: Json | None = None, asked: Sequence[Any] = (), *, is_resumed: bool = False
    ) -> Json:
        journal = open_store(self.store_conn_id, self.journal)
        try:
            config = {**self.config, "prompt": self.prompt}
            attempt = find_attempt(ti, config, journal, secrets=Secrets(self.secrets), is_resumed=is_resumed)
            if is_resumed and attempt.config is None:
                raise AirflowFailException(f"the store holds no run {attempt.run_id} any more, which waited there")
            self.agent_run_id, stop = attempt.run_id, AttemptStop()
            self._kill = partial(stop_if_given_up, ti, stop.cancel, stop.let_go)
            decisions, by = self._read_answer(attempt.run_id, answer, asked, journal)
            told = self._context(attempt, journal, decisions, by, stop)
            output = execute_beside(attempt.config or config, told, lambda: False)
            return self._give(ti, output)
        except FINAL_ERRORS as error:
            raise AirflowFailException(str(error)) from error
        finally:
            if self.journal is not None:
                journal.close()

    def _context(self, at: Attempt, journal: Journal, decisions: Decisions, by: str, stop: AttemptStop) -> NodeContext:
        limit = self.execution_timeout
        return NodeContext(
            run_id=at.run_id,
            journal=journal,
            tools=self.tools,
            model=self.model if self.model_conn_id is None else AgentModelHook(self.model_conn_id).get_conn(),
            attempt=at.number,
            deadline=deadline_within(None if limit is None else limit.total_seconds()),
            secrets=Secrets(self.secrets),
            decisions=decisions,
            by=by,
            stop=stop,
        )

    def _read_answer(
        self, run_id: str, answer: Json | None, asked: Sequence[Any], journal: Journal
    ) -> tuple[Decisions, str]:
        """Return the decisions of a person who answered, and who it was; none where all was decided elsewhere since."""
        if answer is None:
            return {}, "airflow"
        waiting = list_waiting_sync(run_id, journal=journal)
        calls = [call for call in waiting if [call["strand"], call["n"]] in [list(each) for each in asked]]
        user = answer.get("responded_by_user") or {}
        by = f"airflow:{user.get('name') or user.get('id') or 'somebody'}"
        if len(calls) < len(asked):
            self.log.warning("run %s: a call was decided elsewhere; the answer of %s is not used", run_id, by)
            return {}, by
        return read_answer(calls, answer["chosen_options"], answer.get("params_input") or {}), by

    def _give(self, ti: Any, output: AgentOutput) -> Json:
        """Return what goes to XCom; where the run waits, put the task aside."""
        if output.status == "waiting":
            self._wait(ti, output)
        found = give_output(output)
        return {name: found[name] for name in GIVEN}

    def _wait(self, ti: Any, output: AgentOutput) -> None:
        """Put the task aside until a person has decided, or its time has come. Raises what tells Airflow so."""
        calls = calls_for_person(output.waiting)
        if calls and self.decide_in == "airflow":
            question = make_question(calls)
            if ask_in_airflow(ti.id, question, self.assigned_users):
                slots = [[call["strand"], call["n"]] for call in calls]
                await_answer(self, ti.id, question, RESUME, {"asked": slots}, self.response_timeout)
            self.log.warning(
                "run %s: Airflow shows the question that this task asked before; decide in the store", output.run_id
            )
        self.defer(
            trigger=RunTrigger(
                output.run_id,
                [[call["strand"], call["n"]] for call in output.waiting],
                self.poll_interval,
                None if self.journal else self.store_conn_id,
                self.journal,
                due_of(output.waiting),
            ),
            method_name=RESUME,
        )
