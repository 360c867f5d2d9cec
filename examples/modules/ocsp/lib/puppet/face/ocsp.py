"""`puppet ocsp`: ask the CA, through the master, whether certificates are good."""

from __future__ import annotations

from typing import Any

from cryptography.x509 import ocsp
from puppet_model_ocsp_answer import OcspAnswer

from shared.faces import IndirectionFace, action


class Ocsp(IndirectionFace, name="ocsp", indirection="ocsp_answer", terminus="rest", without=("search", "save", "destroy")):
    """
    Ask the CA about certificates.

    Examples:
        puppet ocsp check web1.example.com web2.example.com
        puppet ocsp check web1.example.com --terminus ca
    """

    @action(default=True)
    async def check(self, *certnames: str) -> dict[str, str]:
        """
        Print whether certificates are good or revoked; exit with 1 unless all are good.

        Args:
            certnames: Whose; without any that of this host.
        """
        statuses = {name: status_of(await self.find(name)) for name in certnames or (self.settings.certname,)}
        self.exit_code = 0 if set(statuses.values()) == {"good"} else 1
        return statuses

    @action
    async def show(self, certname: str) -> dict[str, Any]:
        """
        Print all that the CA says about a certificate.

        Args:
            certname: Whose.
        """
        response = response_in(await self.find(certname))
        return {
            "certname": certname,
            "status": response.certificate_status.name.lower(),
            "serial": f"{response.serial_number:X}",
            "revoked": response.revocation_time_utc,
            "valid_until": response.next_update_utc,
        }


def response_in(answer: OcspAnswer) -> ocsp.OCSPResponse:
    """The response of the CA in an answer."""
    return ocsp.load_der_ocsp_response(answer.der)


def status_of(answer: OcspAnswer) -> str:
    """`good`, `revoked` or `unknown`."""
    return response_in(answer).certificate_status.name.lower()
