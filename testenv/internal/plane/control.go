package plane

import (
	"context"
	"fmt"
	"strings"
	"syscall"
)

// answer is what a command gets.
type answer struct {
	OK      bool   `json:"ok"`
	Command string `json:"command"`
	Error   string `json:"error,omitempty"`
}

func answerTo(line string, err error) answer {
	answer := answer{OK: err == nil, Command: strings.Join(strings.Fields(line), " ")}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

// obey does what one line says.
func (p *plane) obey(ctx context.Context, line string) error {
	words := strings.Fields(line)
	if len(words) != 2 {
		return fmt.Errorf("a command is two words, as in: restart apiserver")
	}
	part, err := p.named(words[1])
	if err != nil {
		return err
	}
	verb := words[0]
	if err := part.allows(verb); err != nil {
		return err
	}
	switch verb {
	case "stop":
		part.stop(p.guard)
		return nil
	case "kill":
		part.kill(p.guard)
		return nil
	case "restart":
		part.stop(p.guard)
		return p.startPart(ctx, part)
	case "start":
		return p.startPart(ctx, part)
	case "pause":
		part.isPaused = true
		return part.signal(syscall.SIGSTOP)
	default:
		part.isPaused = false
		if err := part.signal(syscall.SIGCONT); err != nil {
			return err
		}
		return p.await(ctx, part)
	}
}

func (p *plane) named(name string) (*part, error) {
	var names []string
	for _, part := range p.parts {
		if part.name == name {
			return part, nil
		}
		names = append(names, part.name)
	}
	return nil, fmt.Errorf("there is no part %q; there are %s", name, strings.Join(names, ", "))
}

// allows says whether a verb makes sense now. What makes none is an error, so that a test that has
// lost its way hears of it.
func (p *part) allows(verb string) error {
	isStopped := p.process == nil
	switch verb {
	case "start":
		if !isStopped {
			return fmt.Errorf("%s runs already", p.name)
		}
	case "restart":
	case "stop", "kill", "pause", "resume":
		if isStopped {
			return fmt.Errorf("%s is stopped; start it first", p.name)
		}
		if verb == "pause" && p.isPaused {
			return fmt.Errorf("%s is paused already", p.name)
		}
		if verb == "resume" && !p.isPaused {
			return fmt.Errorf("%s is not paused", p.name)
		}
	default:
		return fmt.Errorf("there is no command %q; there are stop, kill, start, restart, pause, resume", verb)
	}
	return nil
}
