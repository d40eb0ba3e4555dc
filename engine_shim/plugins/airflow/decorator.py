"""`@task.agent_core`: a function that returns the prompt of an agent's task."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import (
    SET_DURING_EXECUTION,
    DecoratedOperator,
    TaskDecorator,
    context_merge,
    determine_kwargs,
    task_decorator_factory,
)

from agent_core.outputs import Json
from engine_shim.plugins.airflow.operator import AgentCoreOperator


class AgentCoreDecoratedOperator(DecoratedOperator, AgentCoreOperator):  # type: ignore[misc,unused-ignore]
    """The task of `@task.agent_core`: its function is called for the prompt by each attempt, and the run goes on with
    the prompt that it began with."""

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *AgentCoreOperator.template_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        "config": "json",
    }
    custom_operator_name = "@task.agent_core"

    def __init__(
        self,
        *,
        python_callable: Callable[..., str],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            prompt=SET_DURING_EXECUTION,
            **{"multiple_outputs": True, **options},
        )

    def execute(self, context: Any) -> Json:
        """Run the agent with the prompt that the function returns, or go on with it."""
        context_merge(context, self.op_kwargs)
        prompt = self.python_callable(*self.op_args, **determine_kwargs(self.python_callable, self.op_args, context))
        if not isinstance(prompt, str):
            raise TypeError(
                f"the function of {self.task_id} must return its prompt as text, not {type(prompt).__name__}"
            )
        self.prompt = prompt
        self.render_template_fields(context)
        return AgentCoreOperator.execute(self, context)


def agent_core_task(python_callable: Callable[..., str] | None = None, **options: Any) -> TaskDecorator:
    """Make a function that returns a prompt the task of an agent; `options` are those of `AgentCoreOperator`."""
    return task_decorator_factory(
        python_callable=python_callable,
        decorated_operator_class=AgentCoreDecoratedOperator,
        **{"multiple_outputs": True, **options},
    )
