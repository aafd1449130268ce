"""Cron expressions in words."""

import pytest

from windlass.domain.cron import Cron


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "every minute"),
        ("0 2 * * *", "at 02:00 every day"),
        ("0 0 2 * * ?", "at 02:00:00 every day"),
        ("15,45 6,18 * * *", "at 06:15, 06:45, 18:15 and 18:45 every day"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59, Monday to Friday"),
        ("0 */15 9-17 ? * MON-FRI", "every 15 minutes from 09:00 to 17:59, Monday to Friday"),
        ("*/5 22-2 * * *", "every 5 minutes from 22:00 to 02:59"),
        ("*/15 3,7,9 * * *", "every 15 minutes of the hours 3, 7 and 9"),
        ("5/15 * * * *", "every 15 minutes from minute 5"),
        ("10-20 * * * *", "at minutes 10 to 20 of every hour"),
        ("*/25 * * * *", "at minutes 0, 25 and 50 of every hour"),
        ("0 * * * *", "every hour"),
        ("7 * * * *", "every hour at minute 7"),
        ("15 30 * * * ?", "every hour at minute 30 and second 15"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("30 */2 * * *", "every 2 hours from 00:30 to 22:30"),
        ("0 0,1,2,4,8,16,23 * * *", "at 00:00, 01:00, 02:00, 04:00, 08:00, 16:00 and 23:00 every day"),
        ("* * * * * ?", "every second"),
        ("*/10 * * * * ?", "every 10 seconds"),
        ("1,2,30 * * * * ?", "at seconds 1, 2 and 30 of every minute"),
        ("0/20 5 * * * ?", "every 20 seconds of minute 5 of every hour"),
        ("30 */10 * * * ?", "every 10 minutes at second 30"),
        ("0 12 * * 0", "at 12:00 on Sunday"),
        ("0 0 0 ? * FRI-MON", "at 00:00:00, Friday to Monday"),
        ("0 0 0 ? * MON,WED,FRI", "at 00:00:00 on Monday, Wednesday and Friday"),
        ("0 0 0 ? * FRI#2", "at 00:00:00 on the second Friday of the month"),
        ("0 0 0 ? * FRIL,TUE", "at 00:00:00 on Tuesday and the last Friday of the month"),
        ("0 0 1,15 * *", "at 00:00 on days 1 and 15 of the month"),
        ("0 0 */2 * *", "at 00:00 on every 2 days from day 1 of the month"),
        ("0 0 */2 * MON", "at 00:00 on every 2 days from day 1 of the month if it is Monday"),
        ("0 12 13 * FRI", "at 12:00 on day 13 of the month, and on Friday"),
        ("0 0 12 L * ?", "at 12:00:00 on the last day of the month"),
        ("0 0 12 L-3 * ?", "at 12:00:00, 3 days before the last day of the month"),
        ("0 0 12 LW,1 * ?", "at 12:00:00 on day 1 and the last working day of the month"),
        ("0 0 12 15W * ?", "at 12:00:00 on the working day nearest to day 15 of the month"),
        ("0 0 12 L-1W * ?", "at 12:00:00 on the working day nearest to 1 day before the last day of the month"),
        ("0 0 29 2 *", "at 00:00 on day 29 of February"),
        ("0 0 * NOV-FEB SUN", "at 00:00 on Sunday in November to February"),
        ("0 0 0 1 1 ? 2030-2032", "at 00:00:00 on day 1 of January of 2030 to 2032"),
        ("0 0 2 * * ? 2030", "at 02:00:00 every day, in 2030"),
    ],
)
def test_an_expression_is_explained_in_words(expression: str, expected: str):
    """J9.1: so that a mistake is seen before it fires at night."""
    assert Cron.parse(expression).explain() == expected
