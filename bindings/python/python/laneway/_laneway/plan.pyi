from typing import Any, final

@final
class OpenedPlan:
    def begin(self, verb: str, wishes: dict[str, Any]) -> PlanTask: ...

@final
class PlanTask:
    @staticmethod
    def begin(verb: str, settings: dict[str, Any], wishes: dict[str, Any]) -> PlanTask: ...
    def wait(
        self,
    ) -> tuple[list[str], list[str], tuple[int, int, int, int] | None, BaseException | None, str | None, OpenedPlan | None]: ...
    def stop(self) -> None: ...
