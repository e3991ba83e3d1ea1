package plane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long a part may take to end when it is asked to; then it is killed.
const grace = 20 * time.Second

// tailLines is how much of a log an error shows.
const tailLines = 15

// part is one of the programs that we play, started or not.
type part struct {
	name      string
	arguments []string
	log       string
	isReady   func(context.Context) error

	// process is nil while the part is stopped.
	process  *process
	isPaused bool
}

// process is one life of a part.
type process struct {
	command *exec.Cmd
	// how it ended, once gone is closed.
	how  error
	gone chan struct{}
}

func (p *part) start(guard *guard, ended chan<- *process) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// The part has its own copy.
	defer log.Close()
	process, err := startSelf(ended, p.name, p.arguments, func(command *exec.Cmd) {
		command.Stdout, command.Stderr = log, log
	})
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", p.name, err)
	}
	p.process, p.isPaused = process, false
	return guard.watch(process)
}

// startSelf starts this program again in another role, and tells when that has ended.
func startSelf(ended chan<- *process, role string, arguments []string, prepare func(*exec.Cmd)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, append([]string{role}, arguments...)...)
	// Ctrl-C in a terminal goes to a whole group, and it is for us to end the parts.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	prepare(command)
	if err := command.Start(); err != nil {
		return nil, err
	}
	process := &process{command: command, gone: make(chan struct{})}
	go func() {
		process.how = command.Wait()
		close(process.gone)
		ended <- process
	}()
	return process, nil
}

// stop asks the part to end, and waits until it has.
func (p *part) stop(guard *guard) {
	if p.process == nil {
		return
	}
	// What is frozen hears nothing.
	if p.isPaused {
		_ = p.signal(syscall.SIGCONT)
	}
	_ = p.signal(syscall.SIGTERM)
	select {
	case <-p.process.gone:
	case <-time.After(grace):
	}
	p.kill(guard)
}

// kill ends the part without asking, and waits until it is gone.
func (p *part) kill(guard *guard) {
	if p.process == nil {
		return
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.process.gone
	guard.forget(p.process)
	p.process, p.isPaused = nil, false
}

func (p *part) signal(signal syscall.Signal) error {
	return p.process.command.Process.Signal(signal)
}

// tail is the end of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
