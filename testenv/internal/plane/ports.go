package plane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports that we choose from. They lie below those that the kernel gives to clients: a part that
// is stopped must find its port free again, and a client that keeps trying to reach it could
// otherwise be given that very port.
const portMin, portMax = 20000, 29999

// portTries is how many ports are tried for each that is needed.
const portTries = 200

// freePorts finds ports that nobody listens on.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count * portTries {
		port := portMin + rand.IntN(portMax-portMin+1)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		// Held until all are known, so that none is taken twice.
		defer listener.Close()
		ports = append(ports, port)
		if len(ports) == count {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports were found on 127.0.0.1")
}
