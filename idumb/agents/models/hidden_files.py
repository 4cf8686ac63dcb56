"""Files of a workspace that a model does not see through its tools: secrets and files ignored by git.

This module judges names. Secrets inside other files are redacted when the file is shown.
"""

from __future__ import annotations

import re
from collections.abc import Container

from idumb.domain.agent import AgentRequest

_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", "gcloud"})
_PATHS = (".docker/config.json", ".config/gh/hosts.yml", ".cargo/credentials", ".m2/settings.xml")
_NAMES = frozenset(
    """
    .env .envrc .dev.vars .netrc _netrc .authinfo .npmrc .yarnrc .yarnrc.yml .pypirc .pgpass pgpass.conf .my.cnf
    .mylogin.cnf .git-credentials .htpasswd .dockercfg .dockerconfigjson .boto .s3cfg .vault-token .vault_pass
    .terraformrc terraform.rc kubeconfig credentials secrets auth.json wp-config.php local.settings.json
    """.split()  # noqa: SIM905 - a list of a name a line would be forty lines
)
_FORMS = re.compile(
    r"""
      \.env\..* | .*\.env                                                       # settings of many tools
    | id_(rsa|dsa|ecdsa|ed25519).*                                              # keys of OpenSSH
    | .*\.(pem|key|ppk|p12|pfx|jks|keystore|kdbx|kubeconfig|gpg)                # keys and stores of keys
    | .*\.tfvars(\.json)? | .*\.tfstate(\..*)?                                  # Terraform
    | (.*[-_.])?(secrets?|credentials?|service[-_]account)([-_.].*)?\.(json|ya?ml|toml|ini|txt|properties|xml|cfg|conf)
    """,
    re.VERBOSE,
)


def is_secret(path: str) -> bool:
    """Return whether a file of this name usually contains secrets, ignoring case."""
    *folders, name = path.casefold().split("/")
    inside = f"/{path.casefold()}".endswith(tuple(f"/{place}" for place in _PATHS))
    return inside or not _FOLDERS.isdisjoint((*folders, name)) or name in _NAMES or _FORMS.fullmatch(name) is not None


class Hidden:
    """The hidden files of one request."""

    def __init__(self, request: AgentRequest) -> None:
        self._request = request
        files = () if request.task is None else request.task.files or ()
        self._declared = frozenset(claim.path for claim in files)

    def why(self, path: str, created: Container[str] = ()) -> str | None:
        """Return why a file is hidden, as words that follow its path; None if it is shown.

        `created` are files that the model created: it sees them even if git ignores them.
        """
        if is_secret(path):
            return "may contain secrets and is not shown"
        if path not in self._declared and path not in created and self._request.is_ignored(path):
            return "is ignored by git and not named by the task, so it is not shown"
        return None
