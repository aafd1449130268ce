"""Redaction: what is a secret, what is not, and that no text makes it slow."""

import json
import traceback

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.failure import corpus
from tests.support.growth import grows_less
from windlass.failure.redaction import REDACTED, redact

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75xY\nqqqq/zzz\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    # credentials in URLs and connection strings
    ("jdbc:mysql://admin:s3cret@db.internal:3306/prod", "jdbc:mysql://[REDACTED]@db.internal:3306/prod"),
    ("postgresql://shop:hunter2@db/shop", "postgresql://[REDACTED]@db/shop"),
    ("postgresql+psycopg://shop:hunter2@db:5432/shop?x=1", "postgresql+psycopg://[REDACTED]@db:5432/shop?x=1"),
    ("postgres://shop:p@ss/word@db/shop", "postgres://[REDACTED]@db/shop"),
    ("postgres://shop:pa:ss#w?rd@db/shop", "postgres://[REDACTED]@db/shop"),
    ("redis://:hunter2@cache:6379/0", "redis://[REDACTED]@cache:6379/0"),
    ("mongodb+srv://u:p%40ss@h1,h2/db", "mongodb+srv://[REDACTED]@h1,h2/db"),
    ("amqp://guest:guest@mq//", "amqp://[REDACTED]@mq//"),
    ("https://ghuser:abc123@github.com/x/y.git", "https://[REDACTED]@github.com/x/y.git"),
    ("https://oauthtoken@github.com/x/y.git", "https://[REDACTED]@github.com/x/y.git"),
    ("http://u:pa/ss@proxy:3128/", "http://[REDACTED]@proxy:3128/"),
    ("https://u:p@host/users/@me", "https://[REDACTED]@host/users/@me"),
    ("a http://a:b@x,http://c:d@y z", "a http://[REDACTED]@x,http://[REDACTED]@y z"),
    ("jdbc:oracle:thin:scott/tiger@db:1521:xe", "jdbc:oracle:thin:[REDACTED]@db:1521:xe"),
    ("root:hunter2@tcp(127.0.0.1:3306)/shop", "root:[REDACTED]@tcp(127.0.0.1:3306)/shop"),
    ("jdbc:sqlserver://db:1433;user=sa;password=x@y;", "jdbc:sqlserver://db:1433;user=sa;password=[REDACTED];"),
    ("host=db user=shop password=hunter2 dbname=shop", "host=db user=shop password=[REDACTED] dbname=shop"),
    ("host=db password='it\\'s hunter2' port=1", "host=db password='[REDACTED]' port=1"),
    ("Server=db;User Id=sa;Pwd=hunter2;", "Server=db;User Id=sa;Pwd=[REDACTED];"),
    ("DRIVER=x;PWD={hun;ter2};DB=y", "DRIVER=x;PWD=[REDACTED];DB=y"),
    # named values, in every notation
    ("password=hunter2", "password=[REDACTED]"),
    ("passwd: hunter2", "passwd: [REDACTED]"),
    ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[REDACTED] psql"),
    ("(password=hunter2)", "(password=[REDACTED])"),
    ("Login(user='bob', password='hun ter2')", "Login(user='bob', password='[REDACTED]')"),
    ("{'user': 'bob', 'password': 'hunter2'}", "{'user': 'bob', 'password': '[REDACTED]'}"),
    ('{"user":"bob","api_key":"a\\"b"}', '{"user":"bob","api_key":"[REDACTED]"}'),
    ('"{\\"password\\": \\"hunter2\\", \\"n\\": 1}"', '"{\\"password\\": \\"[REDACTED]\\", \\"n\\": 1}"'),
    ("{'password': 'hunter2 and then it was cut", "{'password': '[REDACTED]'"),
    ("{'passphrase': b'hunter2'}", "{'passphrase': '[REDACTED]'}"),
    ("client_secret = abc.def-ghi", "client_secret = [REDACTED]"),
    ("refreshToken: 1//0abc", "refreshToken: [REDACTED]"),
    ("x-api-key: 0123456789", "x-api-key: [REDACTED]"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[REDACTED]"),
    ("AccountKey=Zm9v+YmFy/==;EndpointSuffix=x", "AccountKey=[REDACTED];EndpointSuffix=x"),
    ("private_key => 'abc'", "private_key => '[REDACTED]'"),
    ("os.environ['DB_PASSWORD'] = 'hunter2'", "os.environ['DB_PASSWORD'] = '[REDACTED]'"),
    ("assert token == 'abc123'", "assert token == '[REDACTED]'"),
    ("session_id=9f8e7d", "session_id=[REDACTED]"),
    ('{"session": "9f8e7d"}', '{"session": "[REDACTED]"}'),
    ("password=SecretStr('hunter2'), n=1", "password=[REDACTED], n=1"),
    ("password=['hunter2', 'hunter3']", "password=[REDACTED]"),
    ("<db><password>hunter2</password></db>", "<db><password>[REDACTED]</password></db>"),
    ("mysqldump --password hunter2 shop", "mysqldump --password [REDACTED] shop"),
    ("['curl', '--api-token', 'hunter2']", "['curl', '--api-token', '[REDACTED]']"),
    # query parameters
    ("GET https://x/y?token=abc&page=2", "GET https://x/y?token=[REDACTED]&page=2"),
    ("https://x/y?page=2&key=abcdef1#top", "https://x/y?page=2&key=[REDACTED]#top"),
    ("https://b/o?sv=1&sig=Zm9v%3D&se=2", "https://b/o?sv=1&sig=[REDACTED]&se=2"),
    ("https://s3/o?X-Amz-Signature=deadbeef&a=1", "https://s3/o?X-Amz-Signature=[REDACTED]&a=1"),
    # headers and tokens
    ("Authorization: Bearer abc.def", "Authorization: [REDACTED]"),
    ("Authorization: Basic YWRtaW46cGFzcw==", "Authorization: [REDACTED]"),
    ("{'Authorization': 'Token hunter2'}", "{'Authorization': '[REDACTED]'}"),
    ("sent Bearer a1b2c3d4 to it", "sent Bearer [REDACTED] to it"),
    ("basic YWRtaW46cGFzcw== refused", "basic [REDACTED] refused"),
    ("Set-Cookie: sid=abc; Path=/", "Set-Cookie: [REDACTED]"),
    (f"bad assertion {JWT}.", "bad assertion [REDACTED]"),
    ("key AKIAIOSFODNN7EXAMPLE is off", "key [REDACTED] is off"),
    ("in 'x\\nASIAIOSFODNN7EXAMPLE'", "in 'x\\n[REDACTED]'"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345 expired", "[REDACTED] expired"),
    ("No such key: sk_live_4eC39HqLyjWDarjt", "No such key: [REDACTED]"),
    ("Incorrect API key provided: sk-abcdefghijklmnopqrstuv", "Incorrect API key provided: [REDACTED]"),
    ("xoxb-123456789012-abcdefghij", "[REDACTED]"),
    (f"cannot read {PEM}, sorry", "cannot read [REDACTED], sorry"),
    (PEM[:60], "[REDACTED]"),
    # people
    ("no user bob.smith+x@mail.example.co.uk here", "no user [REDACTED] here"),
    ("Key (email)=(bob@example.com) already exists", "Key (email)=([REDACTED]) already exists"),
    ("<bob@example.com>", "<[REDACTED]>"),
    ("see https://example.com/x, bob@example.com", "see https://example.com/x, [REDACTED]"),
]

HARMLESS = [
    "",
    "division by zero",
    "'NoneType' object has no attribute 'token'",
    "missing 1 required positional argument: 'password'",
    'FATAL: password authentication failed for user "shop"',
    "fe_sendauth: no password supplied",
    "'api_key'",
    "max_tokens=4096 is above the limit, total_tokens: 8000",
    "token_type=bearer expires_in=3600",
    "secret_name=stripe was not found",
    "Unexpected token } in JSON at position 4",
    "tokenizer: bert",
    "secretary: Ann",
    "Basic authentication is required, Bearer tokens are too",
    'WWW-Authenticate: Bearer realm="shop"',
    "basic HTTP checks failed",
    "invalid credentials: ask the owner",
    "invalid signature: expected 3 arguments",
    'connection to server at "db" (10.0.0.7), port 5432 failed: Connection refused',
    "https://example.com:8080/users/@me?page=2#top",
    "http://[::1]:8080/a/@b",
    "s3://bucket/path/file@2",
    "postgresql://db:5432/shop",
    "git@github.com:owner/repo.git",
    "lodash@4.17.21 and shop@sha256:0123",
    "@app.job at shop.py:12",
    "2026-11-16T10:20:30+00:00 shop:charge failed",
    "std::token::parse in secret://stripe",
    "KeyError: 'sk'",
    "x = dict[str, int]; y == 3; z => 4",
    "1 + 1 = 3 & 4 ? 5 : 6",
    "eyJ is how tokens begin, AKIA too",
    "ümlaut, 漢字 and 🎉 stay",
]


@pytest.mark.parametrize(("text", "expected"), SECRETS)
def test_secrets_are_taken_out_and_the_rest_stays(text: str, expected: str):
    """J5.3: credentials in URLs and DSNs, key=value secrets, bearer tokens and e-mail addresses are redacted."""
    assert redact(text) == expected


@pytest.mark.parametrize(("text", "expected"), SECRETS)
def test_secrets_are_found_inside_longer_texts_and_once_is_enough(text: str, expected: str):
    assert redact(f"Ouch: ({text}\n) and more").startswith("Ouch: (")
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_stay_as_they_are(text: str):
    assert redact(text) == text


def test_addresses_of_people_stay_when_the_switch_is_off():
    """J5.3: the redaction of e-mail addresses can be switched off, that of credentials cannot."""
    text = "mailto:bob@example.com, from:bob@example.com, bob@example.com"
    assert redact(text, emails=False) == text
    assert redact("http://u:p@h", emails=False) == "http://[REDACTED]@h"


@pytest.mark.parametrize("secret", corpus.SECRETS, ids=lambda secret: secret.name)
def test_no_part_of_a_secret_comes_through_in_whatever_it_is_wrapped(secret: corpus.Secret):
    """J5.3: alone, in prose, in a list, in JSON, and in printed tracebacks, which indent what they hold."""
    assert secret.parts
    assert all(part in secret.text for part in secret.parts), "the corpus is wrong about itself"
    group = ExceptionGroup("several", [ExceptionGroup("inner", [ValueError(secret.text)])])
    printed = "".join(traceback.format_exception(group))
    wrapped = (f"Ouch ({secret.text}) and more", repr([secret.text]), json.dumps({"x": secret.text}), printed)
    for text in (secret.text, *wrapped):
        assert corpus.survivors(redact(text), secret) == []
        assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("text", corpus.HARMLESS)
def test_text_that_only_looks_like_a_secret_is_kept(text: str):
    """J5.3: what operators need to understand an error is not taken from them."""
    assert redact(text) == text
    assert redact(f"it failed: {text}\nand more") == f"it failed: {text}\nand more"


@pytest.mark.parametrize("text", corpus.ADDRESSES)
def test_addresses_are_redacted_only_on_request(text: str):
    """J5.3: e-mail addresses (switch)."""
    assert redact(text, emails=False) == text
    assert "[REDACTED]" in redact(text)


KEYS = ["password", "DB_PASSWORD", "api_key", "access_token", "client_secret", "privateKey", "Authorization"]
FORMS = ["{}={}", "{} = {}", "{}: {}", "'{}': '{}'", '"{}":"{}"', "--{} {}", "?{}={}&x=1", "({}={})", "{}='{}'"]


@given(st.sampled_from(KEYS), st.sampled_from(FORMS), st.text("abcdefghXYZ0123456789_+/.:!$%^*~-", min_size=6))
def test_no_form_of_a_named_secret_lets_its_value_through(key: str, form: str, value: str):
    """J5.3: whatever the value is made of, `key=value` secrets do not come through."""
    assume(not (form.startswith("--") and value.startswith("-")))  # that is the next option
    assert value not in redact(f"call failed {form.format(key, value)} at line 3")


@given(st.text("abcXYZ019_+/.:!$%^*~@-", min_size=4), st.sampled_from(["postgresql", "mysql", "redis", "amqps"]))
def test_no_password_in_a_connection_string_comes_through(password: str, scheme: str):
    """J5.3: credentials in DSNs do not come through, also when they should have been escaped."""
    assume("//" not in password)  # it would look like a URL within the URL
    cleaned = redact(f"cannot reach {scheme}://shop:{password}@db.internal/prod")
    assert cleaned == f"cannot reach {scheme}://{REDACTED}@db.internal/prod"


PIECES = [*"@:/='\"\\ \n();<>?&a", "://", "password", "token", "Bearer ", "--", "key", "eyJ", "[REDACTED]", "x.de"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_redacting_twice_changes_nothing_more(text: str):
    once = redact(text)
    assert redact(once) == once


SLOW_ATTEMPTS = [
    *"a@:=-/'\\ \n", "a@", "a.", "a:", ":a", "://", "a://b:", "x://u:p@", "x://u:p@ ", "--", "-- ", "--a", "a@a.",
    "eyJ", "eyJaaaaaa-", "eyJaaaaaa.", "password", "password=", "password='", "password:", 'password="\\', "token ",
    "token=)", "token=((", "token=a(", "secret_", "Bearer ", "Bearer aaaa ", "basic a", "cookie:", "&key=", "<a", "</",
    "<password>", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "AKIA", "AKIA-", "xoxb-", "sk-", "oracle:thin:",
    "%", "%3A%2F%2F", "%3A%2F%2Fa", "password%3D", "password%3Da%", "token: |\n ", "secret: >\n  a\n  ",
    "('password', ", "token=\\naaaa", "token: a\\", "secret: |\\n  ", "token: |\\n a", "password\\n", "token\\n,",
    "('a", "password, value=", "password 'a", "identified by ", "login a password ", "passphrase: a", "mnemonic ",
    "mysql ", "mysql -p", "curl -u a", "curl a:", "sqlplus a/", "sqlplus -a ", "docker login ", "redis-cli -a",
    "api.telegram.org/bot", "hooks.slack.com/services/a", "password: str ", "password=''", 'password="""', "<a token>",
    'token\\":\\"', "token=\\", "token\\\\u003d", "PWD={a}}", "PWD={", "authorization: digest ", "<cookie a=", "pypi-",
    "aaaaaaaaaaaaaaaaaaaa\n", "-----END RSA PRIVATE KEY-----", "aaaa\n", "a:5432:a:a:", "*:*:", "a.a:", "8Q~",
    "string(7) ", 'password="""\n', "password is ", "password is a1", "secret ", "ldapsearch -w", "pass\u200b",
    "\\u200b", "\uff50", "\\uff50", "AKIAAAAAAAAAAAAAAAAA,", "$2b$12$", "$argon2id$", "eyJaaaaaa.aaaaaa.",
]  # fmt: skip


@pytest.mark.parametrize("piece", SLOW_ATTEMPTS)
def test_no_text_makes_the_search_slow(piece: str):
    """J5.3: the search is linear in the length of a message: a quadratic one would grow ten times as fast."""
    tail = "@ %40 password </ -- bearer cookie ? telegram mysql value mnemonic ldap -----END"
    assert grows_less(lambda size: redact((piece * size)[:size] + tail), small=2_000, factor=10, limit=10 * 5)
