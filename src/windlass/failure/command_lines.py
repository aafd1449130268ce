"""Secrets on command lines that follow a short option: `mysql -p…`, `curl -u user:…`.

Both as typed, and as the list of arguments that Python prints. Long options (`--password …`) are named values.
"""

import re
from re import Match

_BETWEEN = r"""["',\s]{1,6}"""
_WITHIN = r"""[^\n]{0,200}?["'\s]"""
"""What may be between a command and its option: text of the same line, of limited length."""

_SECRET = re.compile(
    rf"""(?P<name>
        \b(?:mysql(?:dump|admin|import|check)?|mariadb(?:-dump|-admin)?)(?=["'\s]){_WITHIN}-p
      | \bldap(?:search|modify|add|delete|passwd|whoami|compare|modrdn|exop|vc)(?=["'\s]){_WITHIN}-w["',\s]{{0,6}}
      | \bredis-cli(?=["'\s]){_WITHIN}-a{_BETWEEN}
      | \bsshpass{_BETWEEN}-p["',\s]{{0,6}}
      | \b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|az){_BETWEEN}(?:registry{_BETWEEN})?login\b
        {_WITHIN}-p{_BETWEEN}
      | \bcurl(?=["'\s]){_WITHIN}(?:-u|-U|--user|--proxy-user)(?:=|["',\s]{{0,6}})[^\s:"',-][^\s:"',]{{0,128}}:
      | (?<![\w-])-pass(?:in|out)?{_BETWEEN}pass:
      | \b(?:sqlplus|expdp|impdp|sqlldr|rman){_BETWEEN}(?:-\w{{1,8}}{_BETWEEN}){{0,3}}[^\s/@"',-][^\s/@"',]{{0,128}}/
    )(?!\[REDACTED\])[^\s"'@,][^\s"',]*?(?=@|["',\s]|\Z)""",
    re.VERBOSE,
)
_COMMANDS = ("mysql", "mariadb", "redis-cli", "sshpass", "login", "curl", "pass:", "sql", "dp", "rman", "ldap")


def redact_command_lines(text: str, replacement: str) -> str:
    """Replace secrets that follow an option of a well-known command."""

    def keep_name(match: Match[str]) -> str:
        return match["name"] + replacement

    if any(command in text for command in _COMMANDS):
        return _SECRET.sub(keep_name, text)
    return text
