package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a plane with one part that only sleeps, and a guard over nothing.
func world(t *testing.T) (*plane, *part) {
	t.Helper()
	ended := make(chan *process, 10)
	guard, err := startGuard(ended, "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.dismiss)
	log := filepath.Join(t.TempDir(), "log")
	made := &part{name: sleeper, log: log, isReady: func(context.Context) error {
		if text, err := os.ReadFile(log); err != nil || len(text) == 0 {
			return errors.New("it has said nothing yet")
		}
		return nil
	}}
	plane := &plane{guard: guard, ended: ended}
	plane.parts = append(plane.parts, made)
	t.Cleanup(plane.end)
	return plane, made
}

func TestAPartIsStoppedFrozenAndStartedAsItIsTold(t *testing.T) {
	plane, part := world(t)
	for _, step := range []struct {
		line, refusal string
		runs          bool
	}{
		{"stop sleeper", "start it first", false},
		{"start sleeper", "", true},
		{"start sleeper", "runs already", true},
		{"resume sleeper", "not paused", true},
		{"pause sleeper", "", true},
		{"pause sleeper", "paused already", true},
		{"resume sleeper", "", true},
		{"pause sleeper", "", true},
		{"restart sleeper", "", true},
		{"pause sleeper", "", true},
		{"stop sleeper", "", false},
		{"restart sleeper", "", true},
		{"kill sleeper", "", false},
		{"pause sleeper", "start it first", false},
		{"freeze sleeper", "there is no command", false},
		{"start kubelet", "there are sleeper", false},
		{"start", "two words", false},
		{"start sleeper now", "two words", false},
	} {
		err := plane.obey(t.Context(), step.line)
		if (err == nil) != (step.refusal == "") || err != nil && !strings.Contains(err.Error(), step.refusal) {
			t.Fatalf("%s: %v", step.line, err)
		}
		if runs := part.process != nil; runs != step.runs {
			t.Fatalf("after %q it is so that the part runs: %v", step.line, runs)
		}
	}
}

func TestAFrozenPartHearsThatItIsToEnd(t *testing.T) {
	plane, part := world(t)
	for _, line := range []string{"start sleeper", "pause sleeper"} {
		if err := plane.obey(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	process := part.process
	if err := plane.obey(t.Context(), "stop sleeper"); err != nil {
		t.Fatal(err)
	}
	if how := fmt.Sprint(process.how); how != "signal: terminated" {
		t.Fatalf("it ended by %q, and not because it was asked", how)
	}
}

func TestAPartThatEndsByItselfEndsEverything(t *testing.T) {
	plane, part := world(t)
	part.isReady = func(context.Context) error { return errors.New("never") }
	if err := part.start(plane.guard, plane.ended); err != nil {
		t.Fatal(err)
	}
	if err := part.process.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := plane.await(t.Context(), part); !errors.Is(err, errLost) || !strings.Contains(err.Error(), sleeper) {
		t.Fatalf("%v", err)
	}
}

func TestAnAnswerIsOneLineWhateverWasSaid(t *testing.T) {
	text, err := json.Marshal(answerTo(" stop   it ", errors.New("two\nlines")))
	if err != nil || string(text) != `{"ok":false,"command":"stop it","error":"two\nlines"}` {
		t.Fatalf("%s, %v", text, err)
	}
	text, err = json.Marshal(answerTo("stop apiserver", nil))
	if err != nil || string(text) != `{"ok":true,"command":"stop apiserver"}` {
		t.Fatalf("%s, %v", text, err)
	}
}
