package plane

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Guard is the role of the process that clears up after us.
//
// We may be killed in a way that lets us do nothing any more. The guard is told which processes
// are ours, over a pipe that the kernel closes when we end, however we end. Then it kills what is
// left of them and removes the folder, if that is temporary. A clean end goes the same way.
const Guard = "guard"

// sweeps is how often it tries to remove the folder: what was killed may take a moment to go.
const sweeps, sweepPause = 100, 50 * time.Millisecond

// guard is our end of it.
type guard struct {
	process *process
	pipe    io.WriteCloser
}

func startGuard(ended chan<- *process, dir string, isTemporary bool) (*guard, error) {
	var arguments []string
	if isTemporary {
		arguments = []string{dir}
	}
	g := &guard{}
	var failed error
	process, err := startSelf(ended, Guard, arguments, func(command *exec.Cmd) {
		g.pipe, failed = command.StdinPipe()
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		if isTemporary {
			_ = os.RemoveAll(dir)
		}
		return nil, fmt.Errorf("the guard cannot be started: %w", err)
	}
	g.process = process
	return g, nil
}

func (g *guard) watch(process *process) error {
	_, err := fmt.Fprintf(g.pipe, "+%d\n", process.command.Process.Pid)
	return err
}

func (g *guard) forget(process *process) {
	_, _ = fmt.Fprintf(g.pipe, "-%d\n", process.command.Process.Pid)
}

// dismiss lets it do its work, and waits for that.
func (g *guard) dismiss() {
	_ = g.pipe.Close()
	<-g.process.gone
}

// StandGuard is the guard's own life.
func StandGuard(arguments []string) error {
	if len(arguments) > 1 {
		return fmt.Errorf("guard: it takes one folder at most; people run: testenv up")
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	for pid := range left(os.Stdin) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, dir := range arguments {
		if err := sweep(dir); err != nil {
			return err
		}
	}
	return nil
}

// left reads which processes came and went until nobody writes any more, and says who is left.
func left(input io.Reader) map[int]bool {
	pids := make(map[int]bool)
	for lines := bufio.NewScanner(input); lines.Scan(); {
		line := lines.Text()
		pid, err := strconv.Atoi(line[min(1, len(line)):])
		// What is no process of ours would be a whole group, or everybody.
		if err != nil || pid <= 1 {
			continue
		}
		switch line[0] {
		case '+':
			pids[pid] = true
		case '-':
			delete(pids, pid)
		}
	}
	return pids
}

// sweep removes a folder into which the dying may still write.
func sweep(dir string) error {
	var err error
	for range sweeps {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(sweepPause)
	}
	return err
}
