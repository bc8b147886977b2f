package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// startEtcd runs Debian's etcd-server.
func startEtcd(ctx context.Context, n int) (*Service, error) {
	if _, err := lookUp("etcd"); err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(2 * n)
	if err != nil {
		return nil, err
	}
	clients, peers := addrs[:n], addrs[n:]
	members := make([]string, n)
	for i, p := range peers {
		members[i] = fmt.Sprintf("m%d=http://%s", i, p)
	}
	d, err := newDaemons()
	if err != nil {
		return nil, err
	}
	for i := range n {
		client, peer := "http://"+clients[i], "http://"+peers[i]
		err = errors.Join(err, d.run("etcd",
			"--name", fmt.Sprintf("m%d", i), "--data-dir", fmt.Sprintf("data-%d", i),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(members, ","),
			"--election-timeout", "5000", // ms: see startZooKeeper
			"--logger", "zap", "--log-level", "error"))
	}
	if err == nil {
		err = d.await(ctx, clients, etcdServes)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &Service{
		Version: version("etcd"), Addrs: clients, PIDs: d.pids(), close: d.close,
	}, nil
}

func etcdServes(addr string) error {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get("http://" + addr + "/health")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}
