"""A DAG of Airflow: it waits for a file in AGENT_FOLDER, or fails, as its configuration says."""

import os
import time
from pathlib import Path
from typing import Any

from airflow.sdk import dag, task

FOLDER = Path(os.environ["AGENT_FOLDER"])


@dag(schedule=None, is_paused_upon_creation=False)
def load() -> None:
    @task
    def work(**context: Any) -> str:
        conf = context["dag_run"].conf
        if conf.get("fails"):
            raise RuntimeError("no disk")
        while conf.get("until") and not (FOLDER / conf["until"]).exists():
            time.sleep(0.2)
        return str(conf.get("day"))

    work()


load()
