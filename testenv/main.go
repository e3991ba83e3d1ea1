// Command testenv runs a real Kubernetes control plane on loopback ports, for tests.
//
// One program plays every part: `testenv up` starts itself again as `testenv etcd`, `testenv
// apiserver` and `testenv controllers`, because two of them in one process fight over their global
// flags, and because a part that is a process can be stopped, frozen and killed like a real one.
//
// Here is only what needs the code of Kubernetes and etcd; the rest is in internal/plane, which
// compiles in a second.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"sluice/testenv/internal/plane"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("say what to run: testenv up; testenv up --help tells more")
	}
	arguments := words[1:]
	switch words[0] {
	case "up":
		return plane.Up(arguments)
	case "help", "-h", "--help":
		fmt.Print(plane.Help)
		return nil
	case plane.Etcd:
		etcdmain.Main(append([]string{plane.Etcd}, arguments...))
		return nil
	case plane.APIServer:
		command := apiserver.NewAPIServerCommand()
		command.SetArgs(arguments)
		return command.Execute()
	case plane.Controllers:
		command := controllers.NewControllerManagerCommand()
		command.SetArgs(arguments)
		return command.Execute()
	case plane.Guard:
		return plane.StandGuard(arguments)
	default:
		return fmt.Errorf("there is no %q; people run: testenv up", words[0])
	}
}
