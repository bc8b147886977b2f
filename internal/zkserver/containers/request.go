package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// request is the spec as testcontainers wants it, in the network with that name, if it is
// not empty.
func (s Spec) request(network string) testcontainers.ContainerRequest {
	port := dockernet.MustParsePort(fmt.Sprintf("%d/tcp", s.Port))
	binding := dockernet.PortBinding{HostPort: strconv.Itoa(s.HostPort)}
	if s.HostIP != "" {
		binding.HostIP = netip.MustParseAddr(s.HostIP)
	}
	request := testcontainers.ContainerRequest{
		Image:        s.Image,
		ExposedPorts: []string{port.String()},
		Env:          s.Env,
		// A fixed port: if the engine chose it, a restart would change it.
		HostConfigModifier: func(hc *container.HostConfig) {
			hc.PortBindings = dockernet.PortMap{port: {binding}}
		},
	}
	for path, content := range s.Files {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(content), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	if network != "" {
		request.Networks = []string{network}
		request.NetworkAliases = map[string][]string{network: {s.Alias}}
	}
	return request
}
