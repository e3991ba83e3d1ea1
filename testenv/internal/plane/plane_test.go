package plane

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test program plays the roles that the real one has, and two more.
const (
	owner   = "owner"
	sleeper = "sleeper"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Guard:
			if StandGuard(os.Args[2:]) != nil {
				os.Exit(1)
			}
			return
		case sleeper:
			fmt.Println("ready")
			// Longer than any test; an empty select would be a deadlock, and so an end.
			time.Sleep(time.Hour)
			return
		case owner:
			own(os.Args[2])
			return
		}
	}
	os.Exit(m.Run())
}

// own starts a guard and a part, says who the part is, and waits to be killed.
func own(dir string) {
	ended := make(chan *process)
	guard, err := startGuard(ended, dir, true)
	if err != nil {
		panic(err)
	}
	part := &part{name: sleeper, log: filepath.Join(dir, "sleeper.log")}
	if err := part.start(guard, ended); err != nil {
		panic(err)
	}
	fmt.Println(part.process.command.Process.Pid)
	<-ended
}

func TestWhoIsKilledLeavesNeitherProcessNorFolder(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, owner, dir)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	line, err := bufio.NewReader(output).ReadString('\n')
	if _, scanned := fmt.Sscan(line, &pid); err != nil || scanned != nil {
		t.Fatalf("the owner said %q: %v, %v", line, err, scanned)
	}
	if isGone(pid) {
		t.Fatal("the part is gone before anybody was killed")
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	eventually(t, "the part is gone", func() bool { return isGone(pid) })
	eventually(t, "the folder is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

// isGone counts the dead whom nobody has reaped as gone: in a container orphans often stay so.
func isGone(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is not so that %s", claim)
		}
	}
}

func TestTheGuardKnowsWhoCameAndWent(t *testing.T) {
	pids := left(strings.NewReader("+11\n+12\n-11\nnonsense\n\n7\n+1\n+0\n+-5\n"))
	if len(pids) != 1 || !pids[12] {
		t.Fatalf("left are %v", pids)
	}
}

func TestArgumentsThatNobodyKnowsAreNamed(t *testing.T) {
	for _, odd := range []string{"--dri", "sideways"} {
		if _, err := parse([]string{odd}); err == nil || !strings.Contains(err.Error(), "--help") {
			t.Errorf("%s: %v", odd, err)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestAFolderWithSomethingInItIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := (options{dir: dir}).folder(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (options{dir: dir}).folder(); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Fatalf("%v", err)
	}
}

// claimed is what the other process of the test below is told: the port that it tries to claim.
const claimed = "TESTENV_TEST_CLAIM"

func TestAPortIsClaimedAgainstOtherProcesses(t *testing.T) {
	if text := os.Getenv(claimed); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		isOurs, err := claim(port)
		fmt.Printf("claimed: %v %v\n", isOurs, err)
		return
	}
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		port int
		says string
	}{{ports[0], "claimed: false <nil>"}, {portMax + 1 + os.Getpid(), "claimed: true <nil>"}} {
		other := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		other.Env = append(os.Environ(), claimed+"="+strconv.Itoa(test.port))
		output, err := other.CombinedOutput()
		if err != nil || !strings.Contains(string(output), test.says) {
			t.Fatalf("%v: %s", err, output)
		}
	}
}

func TestPortsAreDifferentAndBelowThoseOfClients(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, port := range ports {
		if seen[port] || port < portMin || port > portMax {
			t.Fatalf("%d of %v", port, ports)
		}
		seen[port] = true
	}
}
