"""The part of an application that declares pipelines."""

from __future__ import annotations

from typing import Unpack

from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.pipeline import AppPipeline
from windlass.pipelines.pipeline_options import PipelineOptionsDict


class AppPipelines:
    """Declares pipelines of an application."""

    _pipelines: DeclaredPipelines

    def pipeline(self, name: str, version: str = "1", **options: Unpack[PipelineOptionsDict]) -> AppPipeline:
        """Declare a pipeline: typed steps in order, each stored before the next one is entered.

        ```python
        orders = app.pipeline("orders", version="1")

        @orders.step
        def parse(raw: dict) -> Order: ...

        orders.submit({"id": 7}, key="order-7").result(timeout=30)
        ```
        Options of steps given here hold for all steps of the pipeline that do not give their own.
        """
        return self._pipelines.declare(name, version, options)
