"""Checks which credentials botocore and google-auth choose from files and environment variables. Laneway must choose the same.

The script writes the files of every case of crates/store/tests/credentials/cases.json into a home folder of its own. A
server on loopback stands in for STS, SSO, metadata servers, Google's token server and IAM. The script prints a table of
cases with the answers of both libraries, and fails if an answer differs from the file's. `cargo test -p laneway-store
credentials::cases` checks Laneway's answers."""

import base64
import contextlib
import datetime
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/store/tests/credentials"
LATER = "2099-01-01T00:00:00Z"


class Services(BaseHTTPRequestHandler):
    """All services in one server. The credentials that they return contain the identity that requested them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200, kind="application/json"):
        body = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.send_header("Metadata-Flavor", "Google")
        self.end_headers()
        self.wfile.write(body.encode())

    def read(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()

    def keys(self, name):
        self.answer({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": "S", "Token": "T", "Expiration": LATER})

    def do_PUT(self):
        self.read()
        self.answer("session", kind="text/plain")

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        roles = "/latest/meta-data/iam/security-credentials"
        if url.path == "/container":
            token = self.headers.get("Authorization")
            self.keys("container" + (f".{token}" if token else ""))
        elif url.path.rstrip("/") == roles:
            self.answer("its-role", kind="text/plain")
        elif url.path == f"{roles}/its-role":
            self.keys("instance")
        elif url.path == "/latest/meta-data/placement/availability-zone":
            self.answer("us-east-2b", kind="text/plain")
        elif url.path == "/federation/credentials":
            login = self.headers.get("x-amz-sso_bearer_token")
            if login == "revoked":
                return self.answer({"message": "Session token not found or invalid", "__type": "UnauthorizedException"}, 401)
            name = f"sso.{query['account_id']}.{query['role_name']}.{login}"
            handed = {"accessKeyId": name, "secretAccessKey": "S", "sessionToken": "T", "expiration": 4070908800000}
            self.answer({"roleCredentials": handed})
        elif url.path == "/subject":
            self.answer({"token": "from-url" if self.headers.get("Ask") == "yes" else "nobody asked"})
        elif url.path.endswith("/service-accounts/default/token"):
            self.answer({"access_token": "machine", "expires_in": 3600, "token_type": "Bearer"})
        elif url.path.endswith("/service-accounts/default/"):
            self.answer({"email": "default", "scopes": [], "aliases": []})
        elif url.path.endswith("/project-id"):
            self.answer("p", kind="text/plain")
        elif url.path == "/computeMetadata/v1/universe/universe-domain":
            self.answer("", 404)
        else:
            self.answer("{}", 200 if url.path == "/" else 404)

    def do_POST(self):
        path, body = urllib.parse.urlsplit(self.path).path, self.read()
        if path == "/token":  # SSO's OIDC
            return self.answer({"accessToken": "renewed", "expiresIn": 3600, "refreshToken": "again", "tokenType": "Bearer"})
        if path.startswith("/impersonate/"):
            email = path.removeprefix("/impersonate/").removesuffix(":generateAccessToken")
            base = self.headers.get("Authorization", "").removeprefix("Bearer ")
            return self.answer({"accessToken": f"as.{email}.{base}", "expireTime": LATER})
        form = dict(urllib.parse.parse_qsl(body))
        if path == "/sts":
            peer = self.connection.getpeercert(True) if isinstance(self.connection, ssl.SSLSocket) else None
            return self.answer({"access_token": f"federated.{subject(form['subject_token'], peer)}", "expires_in": 3600,
                                "token_type": "Bearer", "issued_token_type": "t"})
        if path == "/oauth":
            return self.oauth(form)
        self.sts(form)

    def oauth(self, form):
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] == "withdrawn":
                why = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
                return self.answer(why, 400)
            name = f"user.{form['refresh_token']}"
        else:
            name = f"account.{claims(form['assertion'])['iss']}"
        self.answer({"access_token": name, "expires_in": 3600, "token_type": "Bearer"})

    def sts(self, form):
        role = form["RoleArn"].rsplit("/", 1)[-1]
        if role == "forbidden":
            refusal = "<Code>AccessDenied</Code><Message>not you</Message>"
            return self.answer(f"<ErrorResponse><Error><Type>Sender</Type>{refusal}</Error></ErrorResponse>", 403, "text/xml")
        action = form["Action"]
        if action == "AssumeRole":
            name = f"{role}.{re.search('Credential=([^/]*)/', self.headers['Authorization']).group(1)}"
        else:
            name = f"{role}.{form['WebIdentityToken']}"
        name += f".{form['ExternalId']}" if "ExternalId" in form else ""
        keys = (f"<AccessKeyId>{name}</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>"
                f"<Expiration>{LATER}</Expiration>")
        space = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
        self.answer(f"<{action}Response {space}><{action}Result><Credentials>{keys}</Credentials></{action}Result>"
                    f"</{action}Response>", kind="text/xml")


def claims(token):
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def subject(token, peer):
    """Describes a subject token. For a signed AWS request, returns the signer and the region. For a chain of
    certificates, returns their number.
    """
    if token.startswith("["):
        chain = json.loads(token)
        return f"certificate.{len(chain)}" if base64.b64decode(chain[0]) == peer else "somebody else's"
    if not token.startswith("%7B"):
        return token
    request = json.loads(urllib.parse.unquote(token))
    headers = {header["key"].lower(): header["value"] for header in request["headers"]}
    who = re.search("Credential=([^/]*)/", headers["authorization"]).group(1)
    assert "x-goog-cloud-target-resource" in headers
    return f"aws.{who}.{request['url'].split('.')[1]}"


def certificates():
    """Makes PEM files of a CA and of certificates for the server, for a client, and for a client that the server doesn't trust."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def make(name, issuer=None, issuer_key=None):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.timezone.utc)
        made = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.subject if issuer else subject)
                .public_key(key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
                .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True))
        if issuer:
            names = x509.SubjectAlternativeName([x509.DNSName(name)])
            identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
            made = made.add_extension(names, False).add_extension(identifier, False)
        else:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            made = made.add_extension(usage, critical=True)
            made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        return made.sign(issuer_key or key, hashes.SHA256()), key

    authority, foreign_authority = make("authority"), make("foreign authority")
    pairs = {"server": make("localhost", *authority), "client": make("client", *authority),
             "foreign": make("foreign", *foreign_authority)}
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = {"authority.pem": authority[0].public_bytes(serialization.Encoding.PEM).decode()}
    for name, (certificate, key) in pairs.items():
        files[f"{name}.pem"] = certificate.public_bytes(serialization.Encoding.PEM).decode()
        files[f"{name}.key"] = key.private_bytes(*plain).decode()
    files["chain.pem"] = files["client.pem"] + files["authority.pem"]
    files["backwards.pem"] = files["authority.pem"] + files["client.pem"]
    return {f"x509/{name}": text for name, text in files.items()}


def serve_mutual(folder):
    """Starts the same services for clients that present a certificate (mutual TLS). Returns the URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "x509/authority.pem")
    context.load_cert_chain(folder / "x509/server.pem", folder / "x509/server.key")
    context.verify_mode = ssl.CERT_REQUIRED

    class Server(ThreadingHTTPServer):
        def finish_request(self, request, address):
            # This runs in the connection's own thread, so a failed handshake stops no other connection.
            with contextlib.suppress(OSError), context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, address)

    server = Server(("127.0.0.1", 0), Services)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"https://localhost:{server.server_port}"


def filled(value, places):
    if isinstance(value, dict):
        return {filled(name, places): filled(inner, places) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, places) for inner in value]
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace(name, place)
    return value


def lay_out(case, home):
    """Writes the files of a case, and returns the environment variables that point to these files."""
    files = {".aws/config": case.get("config"), ".aws/credentials": case.get("credentials"),
             "adc.json": case.get("adc"), ".config/gcloud/application_default_credentials.json": case.get("gcloud"),
             **case.get("files", {})}
    for name, content in files.items():
        if content is None:
            continue
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(content) + "\n" if isinstance(content, list) else content
        path.write_text(lines if isinstance(lines, str) else json.dumps(lines))
    named = {"GOOGLE_APPLICATION_CREDENTIALS": str(home / "adc.json")} if "adc" in case else {}
    return {"HOME": str(home), "PATH": os.environ["PATH"], **named, **case.get("env", {})}


def aws(profile):
    import botocore.session

    found = botocore.session.Session(profile=profile or None).get_credentials()
    return {"nothing": True} if found is None else {"as": found.get_frozen_credentials().access_key}


def google(server):
    import google.auth
    import google.auth.transport.requests
    import requests

    class Leads(requests.adapters.HTTPAdapter):
        """Redirects requests for Google's servers to this script's server. google-auth sends some requests to Google
        even if a file names another URL.
        """

        def send(self, request, **options):
            url = urllib.parse.urlsplit(request.url)
            if url.hostname == "localhost":
                return super().send(request, **options)
            account = re.search("/serviceAccounts/(.*)", url.path)
            own = {"oauth2.googleapis.com": "/oauth",
                   "iamcredentials.googleapis.com": f"/impersonate/{urllib.parse.unquote(account[1])}" if account else ""}
            request.url = server + own.get(url.hostname, "/elsewhere")
            return super().send(request, **options)

    session = requests.Session()
    session.mount("https://", Leads())
    asker = google.auth.transport.requests.Request(session)
    found, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"], request=asker)
    headers = {}
    found.before_request(asker, "GET", "https://storage.googleapis.com/", headers)
    token = headers["authorization"].removeprefix("Bearer ")
    name = f"self-signed {claims(token)['iss']}" if token.count(".") == 2 and token.startswith("ey") else token
    billed = headers.get("x-goog-user-project")
    return {"as": name + (f" for {billed}" if billed else "")}


def one(cloud, profile, server):
    """Prints the outcome of one case. Runs in a process of its own, with the case's environment variables."""
    try:
        outcome = aws(profile) if cloud == "aws" else google(server)
    except Exception as error:
        outcome = {"error": type(error).__name__, "words": str(error)}
    print(json.dumps(outcome))


def reference(cloud, case, server, mutual, dead, key, shared):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        host = server.removeprefix("http://")
        places = {"{home}": folder, "{server}": server, "{server_host}": host, "{mutual}": mutual, "{dead}": dead,
                  "{private_key}": key}
        lay_out({"files": shared}, home)
        case = filled(case, places)
        variables = {"REQUESTS_CA_BUNDLE": f"{folder}/x509/authority.pem", **lay_out(case, home)}
        command = [sys.executable, __file__, "--one", cloud, case.get("profile", ""), server]
        run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if not run.stdout.strip():
            return {"error": f"exit status {run.returncode}", "words": run.stderr}
        return json.loads(run.stdout.strip().splitlines()[-1])


def said(outcome):
    if "error" in outcome:
        return f"error: {outcome['error']}"
    return f"as {outcome['as']}" if "as" in outcome else " ".join(outcome)


def main():
    cases = json.loads((FOLDER / "cases.json").read_text())
    key = (FOLDER / "private_key.pem").read_text()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
    shared = certificates()
    with tempfile.TemporaryDirectory() as folder:
        lay_out({"files": shared}, pathlib.Path(folder))
        mutual = serve_mutual(pathlib.Path(folder))
    differing = 0
    for cloud in ("aws", "google"):
        print(f"\n{'case':66} {'laneway':60} {'botocore' if cloud == 'aws' else 'google-auth'}")
        for case in cases[cloud]:
            outcome = reference(cloud, case, f"http://127.0.0.1:{server.server_port}", mutual, dead, key, shared)
            print(f"{case['name']:66} {said(case['laneway'])[:59]:60} {said(outcome)}")
            if {name: value for name, value in outcome.items() if name != "words"} != case["reference"]:
                differing += 1
                print(f"    expected {said(case['reference'])}; {outcome.get('words', '')[:500]}")
    if differing:
        sys.exit(f"{differing} cases differ from the reference's outcome in cases.json")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()
