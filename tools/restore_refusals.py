"""python -m tools.restore_refusals JARS [--out docs/restore-refusals.json]

Provokes each refusal of `kdump restore` at a broker with an authorizer, runs the command that kdump prints, and
restores then. Also connects with SASL (PLAIN, SCRAM) and TLS, and with a wrong password: no secret may be in any
output. JARS is a directory with the jars of a release (make build/release-jars/RELEASE). Needs Java 17 and
confluent-kafka.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka as kafka
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tools.trials.cluster import TOOL, Cluster, config_command, free_port, release_of

DAY = 86_400_000
FOREVER = "9223372036854775807"
PASSWORDS = {"plain": "s3cret-of-plain", "scram": "s3cret-of-scram", "keystore": "s3cret-of-keystore"}
CONFIGS = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_plain="{plain}";
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
ssl.keystore.location={keystore}
ssl.keystore.password={keystore_password}
ssl.keystore.type=PKCS12
listeners={listeners}
listener.security.protocol.map=\\
  PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
"""


class Refusal(NamedTuple):
    """`configs`: of the target's topic, which has `partitions`, 0 for no topic; `action`: part of what kdump prints."""

    name: str
    action: str
    configs: dict[str, str] = {}
    partitions: int = 2
    source: str = "orders"
    options: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Options with which it is restored then, if kdump prints no command."""


REFUSALS = (
    Refusal("no topic", "--create", partitions=0, after=("--create",)),
    Refusal("LogAppendTime", "message.timestamp.type=CreateTime", {"message.timestamp.type": "LogAppendTime"}),
    Refusal("too old", "message.timestamp.before.max.ms=", {"message.timestamp.before.max.ms": "1000"}),
    Refusal("in the future", "message.timestamp.after.max.ms=", source="future"),
    Refusal("retention.ms", "retention.ms=-1", {"retention.ms": "1000"}),
    Refusal("retention.bytes", "retention.bytes=-1", {"retention.bytes": "100"}),
    Refusal("too large", "max.message.bytes=", {"max.message.bytes": "1000"}),
    Refusal("too large, skipped", "--skip-too-large", {"max.message.bytes": "1000"}, after=("--skip-too-large",)),
    Refusal("fewer partitions", "--partitions 2", partitions=1),
    Refusal("fewer partitions, others", "--repartition", partitions=1, after=("--repartition",)),
    Refusal("not empty", "--append", source="future", after=("--append",)),
    Refusal("no keys, compacted", "cleanup.policy=delete", {"cleanup.policy": "compact"}),
    Refusal("damage", "kdump salvage", source="damaged", after=("salvage",)),
    Refusal("undecided", "another expression", options=("--without", "value.sku == 'a'"), after=("--until", "5")),
)


class Lab:
    """A broker with three listeners, and kdump."""

    def __init__(self, jars: Path, work: Path) -> None:
        self.jars, self.work = jars, work
        self.cluster = Cluster(jars, work, work / "disk-0", [work / "disk-1"], combined=True)
        self.disk = work / "disk-1"
        self.sasl, self.tls = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._keys()
        path = self.cluster.write_properties("broker")
        ports = self.cluster.ports
        self.plain = f"127.0.0.1:{ports['broker']}"
        listeners = f"PLAINTEXT://{self.plain},SASL_PLAINTEXT://{self.sasl},SASL_SSL://{self.tls}"
        text = CONFIGS.format(
            plain=PASSWORDS["plain"],
            keystore=work / "keystore.p12",
            keystore_password=PASSWORDS["keystore"],
            listeners=f"{listeners},CONTROLLER://127.0.0.1:{ports['controller']}",
        )
        path.write_text(path.read_text() + text)
        self.cluster.edited.add("broker")
        self.cluster.format_disks()
        self.results: list[dict[str, Any]] = []
        self.outputs: list[str] = []

    def _keys(self) -> None:
        common = ["-keystore", str(self.work / "keystore.p12"), "-storepass", PASSWORDS["keystore"], "-alias", "broker"]
        pair = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1"]
        subprocess.run(["keytool", *pair, "-storetype", "PKCS12", *common], check=True, capture_output=True)
        done = subprocess.run(["keytool", "-exportcert", "-rfc", *common], check=True, capture_output=True)
        (self.work / "ca.pem").write_bytes(done.stdout)

    def fill(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.plain})
        for name in ("orders", "future", "damaged"):
            self.create(name, 2, {"message.timestamp.after.max.ms": FOREVER} if name == "future" else {})
        producer = kafka.Producer({"bootstrap.servers": self.plain})
        now = round(time.time() * 1000)
        for number in range(100):
            for name, at in (("orders", -30 * DAY), ("future", 2 * DAY), ("damaged", -DAY)):
                key, value = None if number % 7 == 0 else b"k%d" % number, b"\xff" * (5000 if number == 50 else 100)
                producer.produce(name, value, key, number % 2, timestamp=now + at + number)
            if number % 10 == 0:
                producer.flush()
        producer.flush()
        shutil.copytree(self.disk / "damaged-0", self.work / "damaged" / "damaged-0")
        (log,) = (self.work / "damaged" / "damaged-0").glob("*.log")
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
        secret = PASSWORDS["scram"].encode()
        credential = UserScramCredentialUpsertion(
            "scram", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), secret
        )
        for future in self.admin.alter_user_scram_credentials([credential]).values():
            future.result(30)

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs)
        self.admin.create_topics([new])[name].result(30)

    def kdump(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, "-m", "kdump", *arguments], capture_output=True, text=True)
        self.outputs.append(done.stdout + done.stderr)
        return done

    def restore(self, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        done = self.kdump("restore", *arguments, "--json")
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def run(self, command: str, *more: str) -> None:
        """Run a command of Kafka as kdump prints it; `more`: what an operator adds."""
        script, *arguments = shlex.split(command)
        classes = {
            "kafka-configs.sh": config_command(self.jars),
            "kafka-topics.sh": f"{TOOL}TopicCommand",
            "kafka-acls.sh": f"{TOOL}AclCommand",
        }
        self.cluster.java_run(classes[script], *arguments, *more)

    def refuse(self, refusal: Refusal) -> None:
        topic = refusal.name.replace(" ", "-").replace(",", "")
        source = self.work / "damaged" if refusal.source == "damaged" else self.disk
        if refusal.partitions:
            self.create(topic, refusal.partitions, refusal.configs)
        if refusal.name == "not empty":
            producer = kafka.Producer({"bootstrap.servers": self.plain})
            producer.produce(topic, b"there before", partition=1)
            producer.flush()
            self.run(
                f"kafka-configs.sh --bootstrap-server {self.plain} --alter --entity-type topics --entity-name {topic} "
                f"--add-config message.timestamp.after.max.ms={FOREVER}"
            )
        words = [str(source), "--topic", f"{refusal.source}={topic}", "--to", self.plain]
        status, answers, stderr = self.restore(*words, *refusal.options, "--yes")
        found = [each for each in answers if each["type"] == "restoreRefusal" and refusal.action in each["action"]]
        action = found[0]["action"] if found else ""
        produced = answers[-1]["produced"] if answers else None
        if refusal.after == ("salvage",):
            out = str(self.work / "salvaged")
            self.kdump("salvage", str(source / "damaged-0"), "--out", out)
            words[0] = out
        elif not refusal.after:
            self.run(action.partition(", or ")[0])
        after = () if refusal.after == ("salvage",) else refusal.after
        again, _, error = self.restore(*words, *after, "--yes")
        # The check with --append compares what follows what was there before.
        check = self.restore(*words, *after, "--check")[0]
        self.note(
            refusal.name,
            status == 1 and bool(found) and produced == 0 and again == 0 and check == 0,
            refused=found[0]["reason"] if found else [answers, stderr],
            action=action,
            after=[again, check, error],
        )

    def note(self, name: str, is_right: bool, **facts: Any) -> None:
        print("ok" if is_right else "WRONG", name, "" if is_right else facts, file=sys.stderr, flush=True)
        hidden: dict[str, Any] = json.loads(self._stable(json.dumps(facts)))
        self.results.append({"case": name, "asExpected": is_right, **hidden})

    def _stable(self, text: str) -> str:
        for part, name in ((self.plain, "kafka:9092"), (self.sasl, "kafka:9093"), (self.tls, "kafka:9094")):
            text = text.replace(part, name)
        return text.replace(str(self.work), "…")

    def client(self, name: str, **options: str) -> list[str]:
        path = self.work / f"{name}.properties"
        path.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in options.items()))
        return ["--config", str(path)]

    def permissions(self) -> None:
        """A user who may nothing: each refusal's command is run, until nothing forbids it."""
        config = self.client("plain", security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="plain",
                             sasl_password=PASSWORDS["plain"])  # fmt: skip
        words = [str(self.disk), "--topic", "orders=guarded", "--to", self.sasl, *config, "--create", "--yes"]
        administrator = ["--bootstrap-server", self.plain]
        reasons: list[str] = []
        for _ in range(6):
            status, answers, stderr = self.restore(*words)
            refused = [each for each in answers if each["type"] == "restoreRefusal"]
            actions = [each["action"] for each in refused]
            reasons += [f"{each['topic']}: {each['reason']}: {each['action']}" for each in refused]
            if not refused and "kafka-acls.sh" in stderr:
                reasons.append(stderr.strip())
                actions = ["kafka-acls.sh" + stderr.strip().partition("kafka-acls.sh")[2]]
            if not actions:
                break
            for action in actions:
                script, _, rest = action.replace("User:NAME", "User:plain").partition(
                    f" --bootstrap-server {self.sasl}"
                )
                self.run(script + rest, *administrator)
        check = self.restore(*words[:-1], "--check")[0]
        self.note(
            "no permission",
            status == 0 and check == 0 and len(reasons) >= 3,
            refused=reasons,
            after=[status, check, stderr],
        )
        self.create("only-described", 2, {})
        for more in (["Describe"], ["Write"]):
            each = [part for operation in more for part in ("--operation", operation)]
            self.run("kafka-acls.sh --add --allow-principal User:plain --topic only-described", *each, *administrator)
            status, answers, stderr = self.restore(
                str(self.disk), "--topic", "orders=only-described", "--to", self.sasl, *config
            )
            refused = [each["reason"] for each in answers if each["type"] == "restoreRefusal"]
            self.note(f"only {more[0]} of a topic", status == 1 and bool(refused), refused=refused, after=[stderr])

    def secrets(self) -> None:
        scram = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "scram", "sasl_password": PASSWORDS["scram"]}
        acl = "kafka-acls.sh --add --allow-principal User:scram --operation All"
        for resource in ("--topic '*'", "--transactional-id '*'", "--cluster"):
            self.run(f"{acl} {resource}", "--bootstrap-server", self.plain)
        for name, to, more in (
            ("SCRAM", self.sasl, {"security_protocol": "SASL_PLAINTEXT"}),
            ("TLS", self.tls, {"security_protocol": "SASL_SSL", "ssl_ca_location": str(self.work / "ca.pem")}),
        ):
            words = [str(self.disk), "--topic", f"orders=with-{name.lower()}", "--to", to, "--create"]
            config = self.client(name, **scram, **more)
            statuses = [self.restore(*words, *config, each)[0] for each in ("--dry-run", "--yes", "--check")]
            self.note(f"connected by {name}", statuses == [0, 0, 0] or statuses[1:] == [0, 0], after=statuses)
            mistakes = {
                "a wrong password": {"sasl_password": "wrong-" + PASSWORDS["scram"]},
                "a wrong mechanism": {"sasl_mechanism": "PLAIN", "sasl_password": "wrong-" + PASSWORDS["scram"]},
                "Java's options": {"sasl_jaas_config": f'x required password="{PASSWORDS["scram"]}";'},
                "an unknown option": {"sasl_passwort": PASSWORDS["scram"]},
            }
            if name == "TLS":
                mistakes["no CA"] = {"ssl_ca_location": "/nowhere"}
            for mistake, change in mistakes.items():
                config = self.client(f"{name} {mistake}", **{**scram, **more, **change})
                status, _, stderr = self.restore(*words, *config)
                self.note(
                    f"{name}, {mistake}", status == 2 and "Traceback" not in stderr, after=[status, stderr.strip()]
                )
        leaked = [text for text in self.outputs if any(secret in text for secret in PASSWORDS.values())]
        self.note("no secret in any output", not leaked, outputs=len(self.outputs), leaked=leaked)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.restore_refusals", description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdump-") as name:
        lab = Lab(options.jars, Path(name))
        with lab.cluster as cluster:
            if not cluster.started():
                raise SystemExit("\n".join(cluster.log("broker")[-20:]))
            lab.fill()
            steps: list[Callable[[], None]] = [lambda refusal=each: lab.refuse(refusal) for each in REFUSALS]  # type: ignore[misc]
            names = [each.name for each in REFUSALS] + ["permissions", "secrets"]
            for step_name, step in zip(names, [*steps, lab.permissions, lab.secrets], strict=True):
                if options.only and step_name not in options.only:
                    continue
                try:
                    step()
                except Exception as error:
                    lab.note(step_name, False, error=repr(error)[:1500])
        release = str(release_of(options.jars))
    wrong = [each for each in lab.results if not each["asExpected"]]
    if options.out:
        options.out.write_text(json.dumps({"kafka": release, "cases": lab.results}, indent=1) + "\n")
    print(f"{len(lab.results)} cases with {release}, {len(wrong)} not as expected")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
