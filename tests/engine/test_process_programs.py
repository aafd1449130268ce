"""Process jobs of whole programs: what a process imports, what it must not do, and whose objects it uses."""

import subprocess
import sys
from pathlib import Path

PREFACE = """
import logging, os, sys
from windlass import JobFailedError, Settings, Windlass
logging.disable(logging.CRITICAL)
print("imported as", __name__, flush=True)
"""


def run(folder: Path, source: str, name: str = "shop") -> str:
    """Run a program to its end and give what it and its processes printed."""
    file = folder / f"{name}.py"
    file.write_text(PREFACE + source)
    done = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


GUARDED = """
class OutOfStock(Exception): ...

class Policy:
    def should_retry(self, attempt, error):
        print("known:", type(error) is OutOfStock, flush=True)
        return False

app = Windlass("sqlite:///shop.db", retry_policy=Policy())

@app.job(executor="process")
def charge(number: int) -> str:
    return f"charged {number} in {__name__}"

@app.job(executor="process")
def fail() -> None:
    raise OutOfStock

@app.job
def note(text: str) -> str:
    return text

@app.job(executor="process")
def more() -> str:
    return str(note.enqueue("from the process").id)

if __name__ == "__main__":
    print("main part")
    with app.worker():
        print(charge.enqueue(42).result(timeout=90))
        fail.enqueue().join(timeout=90)
        print(app.handle(more.enqueue().result(timeout=90)).result(timeout=90))
"""


def test_a_program_run_as_a_script_has_process_jobs(tmp_path: Path):
    """J4.2, J1.1: the process imports the file by its name, so its main part does not run; errors keep their class."""
    said = run(tmp_path, GUARDED).splitlines()
    assert said.count("main part") == 1
    assert said.count("imported as __main__") == said.count("imported as shop") == 1
    assert "charged 42 in shop" in said
    assert "known: True" in said
    assert "from the process" in said, "a body can enqueue, on connections of its process's own"


UNGUARDED = """
app = Windlass("sqlite:///shop.db")

@app.job(executor="process")
def charge(number: int) -> str:
    return f"charged {number}"

with app.worker():
    try:
        charge.enqueue(1).result(timeout=90)
    except JobFailedError as failed:
        print(failed.error)
"""


def test_a_program_without_a_main_guard_gets_an_error_that_names_it(tmp_path: Path):
    """J4.2: a process never becomes a second worker."""
    said = run(tmp_path, UNGUARDED)
    assert "importing 'shop' failed here: ConfigurationError: a process that runs jobs has imported this module" in said
    assert 'put what starts a worker below `if __name__ == "__main__":`' in said
    assert said.count("imported as shop") == 1, "a failed import is not tried again"


PARTICULAR = """
from windlass.submission.codec import JsonSerializer

class Backwards(JsonSerializer):
    __slots__ = ()
    def encode_arguments(self, shape, args, kwargs, limit):
        return super().encode_arguments(shape, args, kwargs, limit)[::-1]
    def decode_arguments(self, shape, text):
        return super().decode_arguments(shape, text[::-1])

class ShortNames:
    def describe(self, function):
        return f"jobs:{function.__name__}"
    def resolve(self, target):
        raise LookupError(target)

class Mailer:
    def __init__(self, sender): self.sender = sender
    def send(self, to: str) -> str: return f"{self.sender} to {to}"

def make(**options):
    made = Windlass("sqlite:///shop.db", allow=["shop", "jobs"], **options)
    made.provide(Mailer("shop"))
    return made

def charge(number: int) -> str: return f"charged {number} in {__name__}"

def ask(app, function, argument):
    with app.worker():
        try:
            print(app.bind(function, argument).using(executor="process").enqueue().result(timeout=90))
        except JobFailedError as failed:
            print(failed.error)
"""

AS_A_GLOBAL = """
app = make(serializer=Backwards())
named = Windlass("sqlite:///named.db", invocation_resolver=ShortNames())
short = named.job(charge)

if __name__ == "__main__":
    ask(app, charge, 1)
    ask(app, Mailer.send, "ops")
    ask(named, short, 2)
"""

AS_A_LOCAL = """
if __name__ == "__main__":
    ask(make(serializer=Backwards()), charge, 1)
    ask(make(), Mailer.send, "ops")
    ask(make(), charge, 2)
"""


def test_serializers_resolvers_and_provided_objects_are_found_with_the_application(tmp_path: Path):
    """J1.1: an application that is a global is the same one in the process."""
    said = run(tmp_path, PARTICULAR + AS_A_GLOBAL)
    assert "charged 1 in shop\n" in said
    assert "shop to ops\n" in said
    assert "charged 2 in shop\n" in said


def test_without_the_application_a_job_fails_with_advice_and_plain_functions_run(tmp_path: Path):
    """J1.1: never with the wrong serializer, never with an object other than the one provided."""
    said = run(tmp_path, PARTICULAR + AS_A_LOCAL)
    assert "ConfigurationError: shop:charge cannot run in a process of its own: it needs its serializer" in said
    assert "ConfigurationError: shop:Mailer.send cannot run in a process of its own: it needs the objects" in said
    assert said.count("make the application a global of a module") == 2
    assert "charged 2 in shop\n" in said


def test_a_function_of_an_interactive_session_gets_an_error_that_it_cannot_be_imported(tmp_path: Path):
    """J1.1: another process cannot import what is in no file."""
    source = PREFACE + UNGUARDED
    done = subprocess.run(
        [sys.executable, "-"], input=source, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert "TargetNotFoundError: __main__:charge" in done.stdout, done.stderr


def test_an_executor_provider_without_processes_keeps_working(tmp_path: Path):
    """J4.2: what it lacks matters only once a job needs it; that job fails."""
    source = """
class Here:
    async def run(self, invocation, /): return invocation.function(*invocation.args)
    async def close(self): print("closed", flush=True)

class Provider:
    def executor(self, kind): return {"async": Here(), "thread": Here()}[kind]

app = Windlass("sqlite:///shop.db", executors=Provider())

@app.job
def charge(number: int) -> str: return f"charged {number}"

if __name__ == "__main__":
    with app.worker():
        print(charge.enqueue(1).result(timeout=90))
    with app.worker():
        try:
            charge.using(executor="process").enqueue(2).result(timeout=90)
        except JobFailedError as failed:
            print(failed.error)
"""
    said = run(tmp_path, source)
    assert "charged 1\nclosed\nclosed\nKeyError: 'process'\n" in said
