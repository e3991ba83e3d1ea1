// Package plane starts the parts of a control plane, does to them what it is told to, and leaves
// nothing behind.
//
// One goroutine has everything in its hands: it hears commands, signals, and the unexpected end of
// a part, one at a time. What the parts need of each other is in plane.go, a part as a process in
// part.go, and the one who clears up after us, whatever happens, in guard.go.
//
// Missing on purpose: a kubelet and a scheduler. Tests make Nodes and Pods, and patch their status
// as a kubelet would.
package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Help is what `testenv up --help` says.
const Help = `testenv up [--dir DIR]

Starts etcd, kube-apiserver (RBAC on, tokens, TLS) and some controllers of Kubernetes on loopback
ports, and prints one line of JSON when all of them are ready:

  url         of the API server
  kubeconfig  of an administrator, a file
  ca          the certificate of the API server, a PEM file
  dir         everything is in here, the logs of the parts included (etcd.log and so on)
  version     of Kubernetes

There is no kubelet and no scheduler: make Nodes and Pods yourself and patch their status.

  --dir DIR   keep everything in this folder, which must be new or empty;
              without it, a temporary folder that is removed at the end

Commands are read from standard input, one a line, and each is answered by one line of JSON:
{"ok":true,"command":"…"}, or "ok":false and an "error".

  stop PART     ask it to end, and wait until it has
  kill PART     end it without asking
  start PART    start it again: same port, same data; answered when it is ready
  restart PART  stop and start
  pause PART    freeze it (SIGSTOP): connections stay open, and nothing is answered
  resume PART   let it go on; answered when it is ready

PART is apiserver, controllers or etcd. When standard input closes, or on Ctrl-C or SIGTERM,
everything ends and the temporary folder goes, which is so even if testenv itself is killed.
`

// Up is the whole life of a control plane.
func Up(arguments []string) error {
	options, err := parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(Help)
		return nil
	}
	if err != nil {
		return err
	}
	// From here on signals wait until there is somebody to clear up.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer cancel()
	dir, err := options.folder()
	if err != nil {
		return err
	}
	ended := make(chan *process)
	guard, err := startGuard(ended, dir, options.isTemporary())
	if err != nil {
		return err
	}
	defer guard.dismiss()
	commands := make(chan string)
	go func() {
		hear(ctx, os.Stdin, commands)
		cancel()
	}()
	plane, err := newPlane(dir, guard, ended)
	if err != nil {
		return err
	}
	defer plane.end()
	ready, err := plane.start(ctx)
	if err == nil {
		err = say(ready)
	}
	if err == nil {
		err = plane.serve(ctx, commands)
	}
	// Being told to end is no failure, wherever we were.
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// options are what the command line says.
type options struct {
	dir string
}

func parse(arguments []string) (options, error) {
	var options options
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&options.dir, "dir", "", "")
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("it does not take %q", flags.Arg(0))
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return options, err
	}
	return options, fmt.Errorf("up: %w; testenv up --help tells what it takes", err)
}

func (o options) isTemporary() bool {
	return o.dir == ""
}

// folder makes the folder that everything goes into.
func (o options) folder() (string, error) {
	if o.isTemporary() {
		return os.MkdirTemp("", "testenv-")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty; name a new folder, or none for a temporary one", dir)
	}
	return dir, nil
}

// hear passes on the lines of our standard input. Whoever started us holds it: when they die it
// closes, and we end too.
func hear(ctx context.Context, input io.Reader, commands chan<- string) {
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		select {
		case commands <- lines.Text():
		case <-ctx.Done():
			return
		}
	}
}

// say prints one line of JSON.
func say(what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(line))
	return err
}
