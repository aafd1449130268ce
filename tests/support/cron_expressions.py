"""Random cron expressions that are right, though some never fire."""

from random import Random

from tests.support.cron_walk import MONTHS, WEEKDAYS


def item(random: Random, low: int, high: int, names: list[str] | None = None, *, wraps: bool = True) -> str:
    def value(least: int = low) -> str:
        chosen = random.randint(least, high)
        return random.choice([str(chosen), names[(chosen - low) % len(names)]]) if names else str(chosen)

    step = random.randint(1, max(high - low - 1, 1))
    kind = random.choices(["one", "range", "star", "stepped star", "stepped range", "open"], [8, 3, 3, 3, 2, 2])[0]
    first = random.randint(low, high - 1)
    match kind:
        case "one":
            return value()
        case "range":
            return f"{value()}-{value()}" if wraps else f"{first}-{value(first)}"
        case "star":
            return "*"
        case "stepped star":
            return f"*/{step}"
        case "stepped range":
            return f"{value()}-{value()}/{step}" if wraps else f"{first}-{value(first + 1)}/{step}"
    return f"{value()}/{step}"


def field(random: Random, low: int, high: int, names: list[str] | None = None, *, wraps: bool = True) -> str:
    count = random.choices([1, 2, 3], [8, 2, 1])[0]
    return ",".join(item(random, low, high, names, wraps=wraps) for _ in range(count))


def unix(random: Random, *, wraps: bool = True) -> str:
    """An expression of five fields; without wraps one that cronsim reads, too."""
    day = random.choice(["*", "*", field(random, 1, 31, wraps=wraps)])
    weekday = random.choice(["*", "*", str(random.randint(0, 7)), random.choice(WEEKDAYS), "*/2", "1-5"])
    if wraps:
        weekday = random.choice([weekday, field(random, 0, 6, WEEKDAYS), "5-7", "6-1", "FRI-MON"])
    month = random.choice(["*", "*", field(random, 1, 12, None if not wraps else MONTHS, wraps=wraps)])
    return f"{field(random, 0, 59, wraps=wraps)} {field(random, 0, 23, wraps=wraps)} {day} {month} {weekday}"


def quartz_day(random: Random) -> str:
    day, before = random.randint(1, 31), random.randint(0, 30)
    forms = ["L", "LW", f"L-{before}", f"L-{before}W", f"{day}W", f"{day}W,L", "31W", "1W", "29W", f"{day},L-{before}"]
    return random.choice([*forms, field(random, 1, 31), field(random, 1, 31)])


def quartz_weekday(random: Random) -> str:
    weekday = random.choice([str(random.randint(1, 7)), random.choice(WEEKDAYS)])
    count = random.randint(1, 5)
    forms = [f"{weekday}#{count}", f"{weekday}L", "L", f"{weekday}#{count},{weekday}L", "FRI-MON", f"2,{weekday}#5"]
    return random.choice([*forms, field(random, 1, 7, WEEKDAYS), field(random, 1, 7, WEEKDAYS)])


def quartz(random: Random, *, seconds: bool = True) -> str:
    """An expression of six or seven fields."""
    days = random.choice(
        ["* * ?", "? * *", "* * *", f"{quartz_day(random)} * ?", f"? * {quartz_weekday(random)}"],
    )
    day, _, weekday = days.split()
    month = random.choice(["*", "*", "*", field(random, 1, 12, MONTHS)])
    year = random.choice(["", "", "", " *", " 2020-2035/2", f" {random.randint(2024, 2040)}", " 2026-2028,2030"])
    second = field(random, 0, 59) if seconds else "0"
    return f"{second} {field(random, 0, 59)} {field(random, 0, 23)} {day} {month} {weekday}{year}"
