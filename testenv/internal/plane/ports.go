package plane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// The ports that we choose from. They lie below those that the kernel gives to clients: a part that
// is stopped must find its port free again, and a client that keeps trying to reach it could
// otherwise be given that very port.
const portMin, portMax = 20000, 29999

// portTries is how many ports are tried for each that is needed.
const portTries = 200

// claims is a file of which each control plane of this machine locks the byte of each of its ports for as long as
// it lives: a part listens only seconds after its port was chosen, or after it was stopped, and until then another
// control plane must not take it. The kernel takes the locks back however we end.
var claims = sync.OnceValues(func() (*os.File, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("testenv-ports-%d", os.Getuid()))
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
})

// claim keeps other control planes away from a port; false: it is another's.
func claim(port int) (bool, error) {
	file, err := claims()
	if err != nil {
		return false, err
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(port), Len: 1}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &lock)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// freePorts finds ports that nobody listens on and no other control plane has chosen.
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
		isOurs, err := claim(port)
		if err != nil {
			return nil, fmt.Errorf("ports cannot be claimed: %w", err)
		}
		if !isOurs {
			continue
		}
		ports = append(ports, port)
		if len(ports) == count {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports were found on 127.0.0.1")
}
