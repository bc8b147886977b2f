package dial

// Hosts is hosts, with the name service and the network of a test.
type Hosts = hosts
