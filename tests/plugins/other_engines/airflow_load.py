"""A DAG of Airflow: it waits for a file beside it, or fails, as its configuration says."""

import time
from pathlib import Path
from typing import Any

from airflow.sdk import dag, task


@dag(schedule=None, is_paused_upon_creation=False)
def load() -> None:
    @task
    def work(**context: Any) -> str:
        conf = context["dag_run"].conf
        if conf.get("fails"):
            raise RuntimeError("no disk")
        while conf.get("until") and not (Path(__file__).parent / conf["until"]).exists():
            time.sleep(0.2)
        return str(conf.get("day"))

    work()


load()
