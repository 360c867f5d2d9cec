import stat

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from certs import keys
from shared.errors import BadData, ConfigError


@pytest.mark.parametrize("password", [None, b"secret"])
def test_a_saved_key_is_read_back(tmp_path, password) -> None:
    key = keys.KeyKind("ec").generate()
    keys.save(tmp_path / "k.pem", key, password=password)
    assert keys.belongs(keys.load(tmp_path / "k.pem", password), key.public_key())
    assert stat.S_IMODE((tmp_path / "k.pem").stat().st_mode) == 0o640


def test_a_wrong_or_missing_password_is_said_without_the_key(tmp_path) -> None:
    keys.save(tmp_path / "k.pem", keys.KeyKind("ec").generate(), password=b"secret")
    for password in (None, b"wrong"):
        with pytest.raises(BadData, match="password") as error:
            keys.load(tmp_path / "k.pem", password)
        assert "BEGIN" not in str(error.value)


@pytest.mark.slow
def test_a_triple_des_key_as_puppet_3_wrote_it_is_read(tmp_path) -> None:
    import subprocess

    path = tmp_path / "ca_key.pem"
    subprocess.run(
        ["openssl", "genrsa", "-traditional", "-des3", "-passout", "pass:abcdefghij", "-out", str(path), "2048"],
        check=True,
        capture_output=True,
    )
    assert b"DEK-Info: DES-EDE3-CBC" in path.read_bytes()
    assert isinstance(keys.load(path, b"abcdefghij"), rsa.RSAPrivateKey)


@pytest.mark.parametrize("kind", [keys.KeyKind(bits=1024), keys.KeyKind("ec", curve="secp112r1")])
def test_a_weak_kind_of_key_is_not_made(kind) -> None:
    with pytest.raises(ConfigError):
        kind.generate()


@pytest.mark.parametrize(
    ("strength", "weak"),
    [
        (keys.Strength("rsa", 2048, 65537), ""),
        (keys.Strength("rsa", 1024, 65537), "shorter"),
        (keys.Strength("rsa", 2048, 1), "exponent"),
        (keys.Strength("rsa", 2048, 4), "exponent"),
        (keys.Strength("ec", 256), ""),
        (keys.Strength("ec", 192), "shorter"),
        (keys.Strength("ed25519", 256), ""),
        (keys.Strength("DSA", 2048), "not supported"),
    ],
)
def test_the_floor_of_key_strength(strength, weak) -> None:
    assert (weak in strength.weakness) if weak else strength.weakness == ""


def test_strength_names_other_kinds_of_keys() -> None:
    assert keys.strength(ec.generate_private_key(ec.SECP384R1()).public_key()) == keys.Strength("ec", 384)


@pytest.mark.parametrize("number", ["p", "d", "dmp1", "iqmp", "e", "n"])
def test_a_damaged_key_is_refused_or_signs_all_the_same(number: str) -> None:
    good = rsa.generate_private_key(65537, 2048)
    numbers = good.private_numbers()
    fields = ("p", "q", "d", "dmp1", "dmq1", "iqmp")
    private = {name: getattr(numbers, name) + (4 if name == number else 0) for name in fields}
    public = {name: getattr(numbers.public_numbers, name) + (4 if name == number else 0) for name in ("e", "n")}
    try:
        key = rsa.RSAPrivateNumbers(**private, public_numbers=rsa.RSAPublicNumbers(**public)).private_key(
            unsafe_skip_rsa_key_validation=True
        )
        pem = keys.private_pem(key)
    except ValueError:
        return  # not even a file of it can be made
    try:
        read = keys.private_key(pem, what="k.pem")
    except BadData as err:
        assert "k.pem" in str(err)
        return
    signature = read.sign(b"x", padding.PKCS1v15(), SHA256())
    good.public_key().verify(signature, b"x", padding.PKCS1v15(), SHA256())
