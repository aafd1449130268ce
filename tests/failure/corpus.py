"""Texts as they are found in errors, logs and progress messages: some hold secrets, some only look like it.

Every secret is invented: `made` derives it from the name it is given, so that it is the same in every run, belongs to
nobody, and no scanner of repositories takes it for one that leaked.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
HEX = "0123456789abcdef"
BASE64 = ALPHANUMERIC + "+/"
URL_SAFE = ALPHANUMERIC + "-_"
PUNCTUATED = ALPHANUMERIC + "!#$%^*+-_.~"


class Secret(NamedTuple):
    """A text, and what of it must not be seen again anywhere."""

    name: str
    text: str
    parts: tuple[str, ...]


def made(name: str, length: int, alphabet: str = ALPHANUMERIC) -> str:
    """A token that was never real; a letter and a digit come first, as in most real ones."""
    digest = b"".join(sha256(f"{name}/{number}".encode()).digest() for number in range(length // 32 + 1))
    return "".join(alphabet[byte % len(alphabet)] for byte in digest)[:length]


SECRETS: list[Secret] = []


def holds(name: str, text: str, *parts: str) -> None:
    """Add a text. `§` in it stands for an invented password; `parts` are secrets that are written out."""
    password = f"q{made(name, 13, PUNCTUATED)}7"
    own = (password,) if "§" in text else ()
    SECRETS.append(Secret(name, text.replace("§", password), (*own, *parts)))


def token(name: str, before: str, start: str, length: int, alphabet: str = ALPHANUMERIC, after: str = "") -> None:
    """Add a text with a token of a well-known form: `start`, and so many characters more."""
    value = start + made(name, length, alphabet)
    SECRETS.append(Secret(name, before + value + after, (value[len(start) :],)))


# ---------------------------------------------------------------------- databases and brokers
holds("postgres url", 'connection to "postgresql://shop:§@db.internal:5432/shop?sslmode=require" failed')
holds("postgres url, two hosts", "postgresql://shop:§@db1:5432,db2:5432/shop?target_session_attrs=any")
holds("postgres url, escaped", "postgresql://shop:p%40ss%2Fhorse%3Abattery@db/shop", "horse", "battery")
holds("postgres url, not escaped", "postgresql://shop:pa/ss:horse@battery@db/shop", "horse", "battery")
holds("postgres keywords", "could not connect: host=db port=5432 user=shop password=§ dbname=shop")
holds(
    "postgres keywords, quoted",
    "invalid dsn: host=db password='correct horse \\'battery\\'' port=5432",
    "horse",
    "batt",
)
holds("postgres, several lines", "OperationalError: FATAL\nDSN was:\n\n  postgres://shop:§@db/shop\n(Background: x)")
holds("postgres environment", "PGHOST=db PGUSER=shop PGPASSWORD=§ psql -c 'select 1'")
holds("postgres sql", "syntax error near: ALTER USER shop WITH PASSWORD '§' VALID UNTIL 'infinity'")
holds("sqlalchemy", "create_engine('postgresql+asyncpg://shop:§@db/shop', echo=True) failed")
holds("mysql url", "mysql+pymysql://shop:§@db.internal:3306/shop?charset=utf8mb4")
holds("mysql command", "Command '['mysqldump', '-u', 'shop', '-p§', 'shop']' returned non-zero exit status 2")
holds("mysql shell", "sh: mysql -ushop -p§ -h db shop: not found")
holds("mysql sql", "1064: CREATE USER 'shop'@'%' IDENTIFIED BY '§' REQUIRE SSL")
holds("go mysql", "dial shop:§@tcp(10.0.0.7:3306)/shop?parseTime=true: refused")
holds("mariadb jdbc", "jdbc:mariadb://db:3306/shop?user=shop&password=§&useSsl=true")
holds("mysql jdbc", "No suitable driver for jdbc:mysql://admin:§@db.internal:3306/prod")
holds("postgres jdbc", "jdbc:postgresql://db/shop?user=shop&password=§&ssl=true refused")
holds("oracle jdbc", "jdbc:oracle:thin:scott/§@//db:1521/XEPDB1")
holds("oracle sqlplus", "sqlplus scott/§@db:1521/XE exited with 1")
holds("oracle url", "oracle+oracledb://scott:§@db:1521/?service_name=XE")
holds("sql server ado", "Server=tcp:db,1433;Initial Catalog=shop;User ID=sa;Password=§;Encrypt=True;")
holds("sql server odbc", "DRIVER={ODBC Driver 18 for SQL Server};SERVER=db;UID=sa;PWD={§};Encrypt=yes")
holds("sql server odbc, braces", "DRIVER={ODBC Driver 18};UID=sa;PWD={correct}}horse;battery};DB=x", "horse", "battery")
holds(
    "sql server odbc, url", f"mssql+pyodbc:///?odbc_connect={quote('UID=sa;PWD=correcthorse9;DB=x')}", "correcthorse9"
)
holds("sql server jdbc", "jdbc:sqlserver://db:1433;databaseName=shop;user=sa;password=§;")
holds("db2 jdbc", "jdbc:db2://db:50000/shop:user=db2inst1;password=§;")
holds("mongodb", "mongodb://shop:§@m1:27017,m2:27017/shop?replicaSet=rs0&authSource=admin")
holds("mongodb srv", "ServerSelectionTimeoutError: mongodb+srv://shop:§@cluster0.example.net/?w=majority")
holds("mongo shell", 'db.auth({user: "shop", pwd: "§"}) failed')
holds("redis", "Error 111 connecting to redis://:§@cache:6379/0. Connection refused.")
holds("redis with user", "rediss://worker:§@cache.internal:6380/1?ssl_cert_reqs=none")
holds("redis-cli", "redis-cli -h cache -a § ping")
holds("amqp", "ConnectionResetError on amqp://shop:§@mq:5672//prod")
holds("kafka jaas", 'sasl.jaas.config=x.PlainLoginModule required username="shop" password="§";')
holds("kafka properties", "{'sasl.username': 'shop', 'sasl.password': '§', 'sasl.mechanism': 'SCRAM-SHA-512'}")
holds("kafka keywords", "KafkaConsumer(sasl_plain_username='shop', sasl_plain_password='§')")
holds("clickhouse", "clickhouse+native://default:§@ch:9000/shop")
holds("clickhouse http", "GET http://ch:8123/?user=default&password=§&query=SELECT%201")
holds("clickhouse headers", "{'X-ClickHouse-User': 'default', 'X-ClickHouse-Key': '§'}")
holds("clickhouse client", "clickhouse-client --host ch --password § --query 'SELECT 1'")
holds("snowflake", "snowflake://shop:§@xy12345.eu-west-1/shop/public?warehouse=wh&role=r")
holds("cassandra", "PlainTextAuthProvider(username='cassandra', password='§')")
holds("elasticsearch", "Elasticsearch(['https://es:9200'], basic_auth=('elastic', '§'))")
holds("neo4j", "neo4j+s://neo4j:§@graph.internal:7687 is not reachable")
holds("ldap", "ldap://ldap.internal bind_dn=cn=admin,dc=shop bindpw=§ failed")
holds("smtp", "smtp://mailer:§@mail.internal:587 said 535")
holds("sftp", "paramiko: sftp://shop:§@files.internal/in: no such host")
holds("netrc", "machine files.internal login shop password § account x")

# ---------------------------------------------------------------------- clouds
AWS_ID, AWS_KEY = "AKIA" + made("aws id", 16, UPPER), made("aws key", 40, BASE64)
AWS_SESSION = made("aws session", 180, BASE64)
holds(
    "aws environment",
    f"AWS_ACCESS_KEY_ID={AWS_ID}\nAWS_SECRET_ACCESS_KEY={AWS_KEY}\nAWS_SESSION_TOKEN={AWS_SESSION}\n",
    AWS_ID, AWS_KEY, AWS_SESSION,
)  # fmt: skip
holds("aws file", f"[default]\naws_access_key_id = {AWS_ID}\naws_secret_access_key = {AWS_KEY}", AWS_ID, AWS_KEY)
holds("aws csv", f"Access key ID,Secret access key\n{AWS_ID},{AWS_KEY}", AWS_ID, AWS_KEY)
holds("aws boto", f"boto3.client('s3', aws_access_key_id='{AWS_ID}', aws_secret_access_key='{AWS_KEY}')", AWS_KEY)
holds(
    "aws presigned",
    f"403 for https://b.s3.amazonaws.com/o?X-Amz-Credential={AWS_ID}%2F20261116%2Feu&X-Amz-Signature="
    f"{made('aws sig', 64, HEX)}&X-Amz-Security-Token={quote(AWS_SESSION, safe='')}",
    AWS_ID, made("aws sig", 64, HEX), quote(AWS_SESSION, safe=""),
)  # fmt: skip
PEM_BODY = "\n".join(made(f"pem {line}", 64, BASE64) for line in range(6))
for kind in (
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
):
    holds(kind.lower(), f"bad key:\n-----BEGIN {kind}-----\n{PEM_BODY}\n-----END {kind}-----\n", *PEM_BODY.split("\n"))
GCP = {
    "type": "service_account",
    "project_id": "shop-prod",
    "private_key": f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n-----END PRIVATE KEY-----\n",
    "client_email": "svc@shop-prod.iam.gserviceaccount.com",
}
holds("gcp service account", f"cannot use {json.dumps(GCP, indent=2)}", *PEM_BODY.split("\n"))
holds("gcp, json in json", json.dumps({"env": json.dumps({"GOOGLE": json.dumps(GCP)})}), *PEM_BODY.split("\n"))
holds("gcp as a dict", f"ValueError: {GCP!r}", *PEM_BODY.split("\n"))
holds("pem cut off", f"bad key: -----BEGIN PRIVATE KEY-----\n{PEM_BODY[:150]}", PEM_BODY[:64])
token("google api key", "API key not valid: ", "AIza", 35, URL_SAFE)
token("google access token", "invalid_grant for ", "ya29.", 60, URL_SAFE)
AZURE = made("azure", 86, BASE64) + "=="
holds("azure storage", f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={AZURE};EndpointSuffix=x", AZURE)
holds("azure service bus", f"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={AZURE[:44]}", AZURE[:44])
holds(
    "azure sas",
    f"https://x.blob.core.windows.net/c?sv=2026&sig={quote(AZURE[:44], safe='')}&se=2027",
    quote(AZURE[:44], safe=""),
)
holds("azure client secret", "AADSTS7000215: client_id=shop&client_secret=§&grant_type=client_credentials")
token("digitalocean", "401 with ", "dop_v1_", 64, HEX)
token("vault", "permission denied: ", "hvs.", 90, URL_SAFE)
token("databricks", "403 Forbidden ", "dapi", 32, HEX)

# ---------------------------------------------------------------------- services
for prefix in ("ghp_", "gho_", "ghs_", "ghu_"):
    token(f"github {prefix}", "Bad credentials: ", prefix, 36)
token("github fine-grained", "remote: ", "github_pat_", 82, ALPHANUMERIC + "_")
token("github remote", "fatal: https://x-access-token:", "ghs_", 36, after="@github.com/shop/shop.git not found")
token("gitlab", "401 Unauthorized ", "glpat-", 20, URL_SAFE)
token("gitlab runner", "403 ", "glrt-", 20, URL_SAFE)
token("slack bot", "invalid_auth ", "xoxb-", 50, ALPHANUMERIC)
token("slack app", "not_authed ", "xapp-1-A0-", 64, HEX)
token("slack webhook", "404 https://hooks.slack.com/services/", "T0SHOP000/B0SHOP000/", 24)
token("discord webhook", "404 https://discord.com/api/webhooks/112233445566778899/", "", 68, URL_SAFE)
token("telegram", "404 https://api.telegram.org/bot", "123456789:", 35, URL_SAFE, after="/sendMessage")
token("stripe", "Invalid API Key provided: ", "sk_live_", 24)
token("stripe restricted", "Invalid API Key provided: ", "rk_test_", 24)
token("stripe webhook", "No signatures match ", "whsec_", 32)
token("twilio key", "20003 Authenticate: ", "SK", 32, HEX)
holds(
    "twilio token",
    f"Client('AC{made('ac', 32, HEX)}', auth_token='{made('twilio', 32, HEX)}')",
    made("twilio", 32, HEX),
)
token("sendgrid", "403 ", f"SG.{made('sg', 22, URL_SAFE)}.", 43, URL_SAFE)
token("mailgun", "401 ", "key-", 32, HEX)
token("npm", "npm ERR! 401 ", "npm_", 36)
holds("npmrc", "//registry.npmjs.org/:_authToken=§")
token("pypi", "403 Invalid or non-existent authentication: ", "pypi-AgEIcHlwaS5vcmc", 80, URL_SAFE)
token("openai", "Incorrect API key provided: ", "sk-", 48)
token("openai project", "Incorrect API key provided: ", "sk-proj-", 120, URL_SAFE)
token("anthropic", "invalid x-api-key ", "sk-ant-api03-", 95, URL_SAFE)
token("hugging face", "401 ", "hf_", 34)
token("shopify", "403 ", "shpat_", 32, HEX)
token("docker hub", "denied: ", "dckr_pat_", 27, URL_SAFE)
token("grafana", "401 ", "glsa_", 32)
holds("sentry dsn", f"https://{made('sentry', 32, HEX)}@o1.ingest.sentry.io/2 rejected", made("sentry", 32, HEX))
token("bcrypt hash", "no match for ", "$2b$12$", 53, ALPHANUMERIC + "./")

# ---------------------------------------------------------------------- headers, tokens, cookies, queries
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJ{made('claims', 60, URL_SAFE)}.{made('seal', 43, URL_SAFE)}"
JWT_PARTS = (made("claims", 60, URL_SAFE), made("seal", 43, URL_SAFE))
BASIC = made("basic", 22, BASE64) + "=="
holds("bearer header", f"> Authorization: Bearer {made('bearer', 40, URL_SAFE)}", made("bearer", 40, URL_SAFE))
holds("basic header", f"{{'Authorization': 'Basic {BASIC}'}}", BASIC[:-2])
holds("proxy header", f"Proxy-Authorization: Basic {BASIC}\r\nHost: x", BASIC[:-2])
holds("digest header", 'Authorization: Digest username="bob", nonce="ab12", response="§"')
holds("asgi headers", f"[(b'host', b'x'), (b'authorization', b'Bearer {JWT}'), (b'x-api-key', b'§')]", *JWT_PARTS)
holds("api key header", 'curl: (22) -H "X-Api-Key: §" -H "Accept: */*" returned 403')
holds("custom auth header", "X-Auth-Token: §\nX-Vault-Token: §")
holds("jwt in prose", f"token {JWT} has expired", *JWT_PARTS)
holds("jwt in a query", f"GET /ws?jwt={JWT}&v=2", *JWT_PARTS)
holds("cookie header", "Cookie: theme=dark; sessionid=§; csrftoken=§")
holds("set-cookie", "< Set-Cookie: sid=§; Path=/; HttpOnly")
holds("cookie dict", "{'Cookie': 'sid=§; theme=dark', 'Host': 'x'}")
holds("cookie jar", "<RequestsCookieJar[<Cookie sessionid=§ for shop.example/>]>")
holds("query string", "GET /v1/items?access_token=§&page=2 HTTP/1.1")
holds("query key", "https://maps.example.com/api?address=x&key=§")
holds("oauth code", "POST /token grant_type=authorization_code&code=§&redirect_uri=https://x")
holds("url fragment", "https://app.example/cb#access_token=§&token_type=bearer")
holds(
    "form body, escaped",
    f"body={quote('grant_type=password&username=bob&password=correcthorse9&x=1')}",
    "correcthorse9",
)
holds("url in a query, escaped", f"next={quote('postgresql://shop:correcthorse9@db/shop', safe='')}", "correcthorse9")
holds("otpauth", f"otpauth://totp/shop:bob?secret={made('totp', 32, UPPER)}&issuer=shop", made("totp", 32, UPPER))

# ---------------------------------------------------------------------- notations
holds("dict", "KeyError in {'user': 'bob', 'password': '§', 'host': 'db'}")
holds("dataclass", "Settings(host='db', db_password='§', port=5432)")
holds("secret of spaces", "Login(user='bob', passphrase='correct horse battery')", "horse", "battery")
holds("passphrase in prose", "passphrase: correct horse battery staple\nnext line", "horse", "battery", "staple")
holds("pairs", "[('user', 'bob'), ('password', '§'), ('api_key', '§')]")
holds("json", json.dumps({"db": {"password": "correct horse9", "port": 1}}), "horse9")
holds("json in json", json.dumps({"body": json.dumps({"clientSecret": "correct horse9", "n": 1})}), "horse9")
holds("json three deep", json.dumps(json.dumps(json.dumps({"token": 'correct "horse9', "n": 1}))), "horse9")
holds("json, escaped for html", '{"q": "user\\u003dbob\\u0026password\\u003d§\\u0026x\\u003d1"}')
holds("json list of variables", '[{"name": "DB_PASSWORD", "value": "§"}, {"name": "PORT", "value": "1"}]')
holds("yaml", "db:\n  host: db\n  password: §\n  port: 5432")
holds("yaml, quoted", 'db:\n  password: "correct horse9"\n', "horse9")
holds("yaml, block", "tls:\n  secret: |\n    §\n    zweitens9\n  port: 1", "zweitens9")
holds("yaml variables", "env:\n  - name: API_TOKEN\n    value: §\n  - name: PORT\n    value: 80")
holds("toml", "[database]\npassword = '''§'''\n")
holds("properties", "spring.datasource.url=jdbc:x\nspring.datasource.password=§\n")
holds("xml element", "<config><db:password>§</db:password></config>")
holds("xml attributes", '<add key="DbPassword" value="§" />')
holds("cdata", "<password><![CDATA[§]]></password>")
holds("environment dump", "export PATH=/bin\nexport STRIPE_SECRET_KEY=§\nexport HOME=/root")
holds("environ", "environ({'HOME': '/root', 'DJANGO_SECRET_KEY': '§', 'LANG': 'C'})")
holds("powershell", '$env:API_TOKEN = "§"; ./run.ps1')
holds("docker", "docker run -e DB_PASSWORD=§ -e PORT=1 shop:1.2")
holds("docker login", "docker login -u shop -p § registry.example.com")
holds("curl user", "curl -u bob:§ https://example.com/x")
holds("curl long user", "curl --user bob:§ https://example.com/x")
holds("sshpass", "sshpass -p § ssh shop@host")
holds("long option", "./run --db-password=§ --verbose")
holds("long option, blank", "./run --api-token § --verbose")
holds("argument list", "Command '['psql', '--password', '§', '--host', 'db']' died with <Signals.SIGKILL: 9>.")
holds("openssl", "openssl rsa -in k.pem -passin pass:§ -out x")
holds("java", "DbConfig{user=bob, password=§, url=jdbc:x}")
holds("ruby", '{:user=>"bob", :password=>"§"}')
holds("php", "array('user' => 'bob', 'password' => '§')")
holds("go", "&{User:bob Password:§ Host:db} map[secret:§ user:bob]")
holds("rust", 'Config { user: "bob", password: Some("§"), port: 1 }')
holds("terraform", 'resource "db" "x" {\n  password = "§"\n}')
holds("source line", 'File "x.py", line 3, in f\n    connect(host, password="§", timeout=3)\nValueError: no')
holds("annotated source", 'def login(user: str, password: str = "§") -> None:')
holds("comparison", "assert token == '§'\nE  AssertionError")
holds("subscript", "os.environ['API_KEY'] = '§'")
holds("german", "Anmeldung fehlgeschlagen: benutzer=bob passwort=§")
holds("russian", "ошибка входа: пользователь=bob пароль=§")
holds("not of ascii", "password='пароль-от-базы-🐎-9' refused", "пароль-от-базы", "🐎-9")
holds("japanese value", "password=正しい馬の電池ホチキス failed", "正しい馬", "電池ホチキス")
holds(
    "traceback",
    f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nE: postgres://u:{made("tb", 12)}@h/d',
    made("tb", 12),
)
holds("chained", "OSError: x\n\nDuring handling of the above exception, another exception occurred:\n\nE: api_key=§")
holds("long line", f"{'x' * 300} password=§ {'y' * 300}")
holds("mnemonic", "mnemonic: abandon ability able about above absent absorb", "above absent", "absorb")

# ---------------------------------------------------------------------- forms that a reviewer found
holds("pgpass", "password file has: db.internal:5432:shop:shop:§")
holds("pgpass, any", "*:*:*:shop:§\nlocalhost:5432:shop:shop:§")
holds("kubeconfig", f"  user:\n    client-key-data: {BASIC}{BASIC}\n    client-certificate: a.pem", BASIC[:-2])
holds("pem, only its end", f"could not parse {PEM_BODY}\n-----END RSA PRIVATE KEY-----", *PEM_BODY.split("\n"))
holds("pem, short last line", f"…{PEM_BODY}\nq8==\n-----END PRIVATE KEY-----\n", *PEM_BODY.split("\n"))
holds("pgp, only its end", f"{PEM_BODY}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----", *PEM_BODY.split("\n"))
TOML = '[db]\npassword = """\ncorrecthorse9\nbattery7"""\nport = 1'
holds("toml, several lines", TOML, "correcthorse9", "battery7")
holds("toml, literal lines", "[db]\npassword = '''\ncorrecthorse9\nbattery7'''", "correcthorse9", "battery7")
token("azure secret", "AADSTS7000215: Invalid client secret provided: ", "3jV8Q~", 34, ALPHANUMERIC + "_~.-")
token("azure secret, bare", "client credential ", "8Q~", 34, URL_SAFE, after=" was rejected")
holds("azure secret, words", "AADSTS7000215: Invalid client secret provided: §")
holds("ldapsearch", "ldapsearch -x -D cn=admin,dc=shop -w § -H ldap://ldap.internal exited with 49")
holds("ldapmodify list", "Command '['ldapmodify', '-D', 'cn=admin', '-w', '§']' returned non-zero exit status 49")
holds("wpa", "WPA_PSK=§ WPA_SSID=shop hostapd")
holds("psk", 'network={\n  ssid="shop"\n  psk="§"\n}')
holds("php var_dump", 'array(1) {\n  ["password"]=>\n  string(15) "§"\n}')
holds(
    "twilio pair", f"Client('AC{made('pair', 32, HEX)}', '{made('pair token', 32, HEX)}')", made("pair token", 32, HEX)
)
holds("password is", "the password is: §")
holds("api key, two words", "API key: §")
holds("otp", "POST /verify otp=493817262&user=bob", "493817262")
holds("pin", "POST /verify user=bob&pin=49381726", "49381726")
holds("prose, is", "the password is correcthorse9", "correcthorse9")
holds("prose, with", "login failed for user bob with password correcthorse9", "correcthorse9")
holds("prose, was", "the API key was 8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543")
holds("prose, aws", f"signing with secret {AWS_KEY} failed", AWS_KEY)
holds("zero width", "pass\u200bword=§")
holds("full width", f"{''.join(chr(ord(letter) + 0xFEE0) for letter in 'password')}=§")

# ---------------------------------------------------------------------- nothing secret about these
HARMLESS = [
    "the token expired five minutes ago; sign in again",
    "unexpected token '}' at line 3, column 7",
    "max_tokens is 4096, prompt_tokens=812, completion_tokens: 90",
    "the key of the hash must be a text",
    "KeyError: 'customer_key'",
    'duplicate key value violates unique constraint "users_email_key"\nDETAIL:  Key (id)=(42) already exists.',
    "foreign key constraint fails (`shop`.`orders`, CONSTRAINT `fk_customer` FOREIGN KEY (`customer_id`))",
    "connection to 10.0.0.7:5432 refused; ports 8000-8010 are free",
    "ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 5432)",
    "FileNotFoundError: [Errno 2] No such file or directory: '/etc/secrets/tokens.json'",
    r"C:\Users\shop\keys\token.txt is locked",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 is not an ancestor of main",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 does not match",
    "job 0198c0de-0000-7000-8000-000000000001 was not found",
    "GET https://example.com:8443/v1/items?page=2&sort=name#top returned 503",
    "jdbc:postgresql://db:5432/shop?ssl=true&currentSchema=public",
    "postgresql://db.internal/shop is not reachable, nor is redis://cache:6379/0",
    "git@github.com:owner/repo.git and ssh://git.example.com/x",
    "sorted(items, key=lambda item: item.total, reverse=True)",
    "def login(user: str, password: str) -> None:",
    "def login(user: str, password: str | None = None) -> None:",
    "SELECT id, token_count FROM usage WHERE key = $1 AND password = %s OR token = ?",
    "UPDATE users SET password = %(password)s, api_key = NULL WHERE id = 7",
    "password=None, token='', api_key=\"\", reset_password=True",
    'fe_sendauth: no password supplied; password authentication failed for user "shop"',
    "the secret of success is patience; a secretary took notes",
    "Basic plan, bearer of bad news, basic idea",
    "session closed after 30 minutes; the session was idle",
    "passengers: 3, compass=north, bypass=1, author=Ann, monkey: no, turkey=1",
    "invalid signature: expected 3 arguments, got 2",
    'WWW-Authenticate: Bearer realm="shop", error="invalid_token"',
    "at com.shop.TokenFilter.doFilter(TokenFilter.java:42)",
    "npm_config_cache_minimum_age and hf_hub_download_with_retries and sk-learn-contrib-extra-models",
    "x = dict[str, int]; y == 3; z => 4; a := 5",
    "2026-11-16T10:20:30.123456+00:00 shop.tasks:charge took 1,024 ms (p95: 2.5 s)",
    "docker run -p 8080:80 -e PORT=1 shop:1.2 && mkdir -p /var/lib/shop",
    "ssh -p 2222 host; rsync -a source/ target/; cp -a x y; curl -u",
    "https://hooks.example.com/services and https://discord.com/api",
    "Größe überschritten: 漢字 🎉 naïve façade",
    "pass: 12, fail: 3, skip: 1 (see https://ci.example.com/runs/77)",
    "<key>CFBundleName</key><string>Shop</string>",
    "name: DATABASE_HOST\nvalue: db.internal",
    "SyntaxError: unexpected token: '}' at line 3",
    "x.py:12:34: E501 line too long; main.c:7:1: error: expected ';'; 12:30:45:123 started",
    "-----END CERTIFICATE----- was expected after MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa",
    "the password is too short; password must have 8 characters; the API key is missing",
    "spinning=1 pinned=2 ping=3 hotpot=4 desktop=5",
    "ＡＢＣ株式会社 and 👨\u200d👩\u200d👧 stay",
]
"""They come out as they went in, unless e-mail addresses are in them and that switch is on."""

ADDRESSES = ["write to bob.smith@example.com or <ops@shop.example>", "lodash@4.17.21 by ann@example.org"]
"""Harmless with the switch off."""


LENGTH = 8
"""Characters of a secret that must not be visible in a row."""


def survivors(text: str, secret: Secret) -> list[str]:
    """Pieces of a secret, of so many characters or all there is, that are found in a text."""
    return [piece for part in secret.parts for piece in _pieces(part) if piece in text]


def leaks(text: str) -> list[str]:
    """Pieces of any secret that are found in a text, which may be long: each with the name of its secret."""
    owners = {piece: secret.name for secret in SECRETS for part in secret.parts for piece in _pieces(part)}
    found = [f"{name}: {piece}" for piece, name in owners.items() if len(piece) < LENGTH and piece in text]
    windows = (text[start : start + LENGTH] for start in range(len(text)))
    return found + [f"{owners[window]}: {window}" for window in windows if window in owners]


def _pieces(part: str) -> list[str]:
    return [part[start : start + LENGTH] for start in range(max(len(part) - LENGTH + 1, 1))]
