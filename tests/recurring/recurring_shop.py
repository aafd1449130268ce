"""An application with methods that recur."""

from tests.recurring.recurring_bodies import RAN
from windlass import Windlass

app = Windlass("sqlite://")


class Shop:
    """Its object is made where the job runs."""

    name = "shop"

    @app.recurring("0 * * * *", key="clean")
    def clean(self) -> None:
        RAN.append(f"{self.name} cleaned")

    @app.recurring("0 * * * *", key="count")
    @staticmethod
    def count() -> None:
        RAN.append("counted")

    @app.recurring("0 * * * *", key="open")
    @classmethod
    def open_all(cls) -> None:
        RAN.append(f"{cls.name} opened")
