package plane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The parts by name, as the command line and the commands call them.
const (
	Etcd        = "etcd"
	APIServer   = "apiserver"
	Controllers = "controllers"
)

// controllers that run: what makes a Service's endpoints, what clears up, and what tests of a
// controller like ours stand on.
var controllers = []string{
	"endpointslice-controller",
	"garbage-collector-controller",
	"namespace-controller",
	"deployment-controller",
	"replicaset-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
}

// patience is how long a part may take until it is ready; a cold machine needs a while.
const patience = 3 * time.Minute

// poll is how often readiness is asked for: none of the parts can tell us by itself.
const poll = 50 * time.Millisecond

// ready is what the first line of JSON says.
type ready struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	CA         string `json:"ca"`
	Dir        string `json:"dir"`
	Version    string `json:"version"`
}

// errLost ends everything: a control plane with a part that fails by itself proves nothing.
var errLost = errors.New("a part has ended by itself")

// plane is the control plane: its parts, in the order in which they are started.
type plane struct {
	ready  ready
	server server
	parts  []*part
	guard  *guard
	// ended gets every process that has ended, asked or not.
	ended chan *process
}

func newPlane(dir string, guard *guard, ended chan *process) (*plane, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	etcd, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	url := fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	in := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	secrets, err := writeSecrets(dir)
	if err != nil {
		return nil, err
	}
	p := &plane{
		ready:  ready{URL: url, Kubeconfig: in("kubeconfig"), CA: in("apiserver", "apiserver.crt"), Dir: dir},
		guard:  guard,
		ended:  ended,
		server: server{url: url, ca: in("apiserver", "apiserver.crt"), token: secrets.token},
	}
	if err := writeKubeconfig(p.ready, secrets.token); err != nil {
		return nil, err
	}
	health := server{url: fmt.Sprintf("https://127.0.0.1:%d", ports[3]), ca: in("controllers", "kube-controller-manager.crt")}
	p.parts = []*part{
		{
			name: Etcd, log: in("etcd.log"),
			isReady: func(ctx context.Context) error { return server{url: etcd}.ask(ctx, "/health") },
			arguments: []string{
				"--data-dir=" + in("etcd"), "--name=testenv", "--unsafe-no-fsync", "--log-level=warn",
				"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=testenv=" + peer,
			},
		},
		{
			name: APIServer, log: in("apiserver.log"),
			// The namespaces come a moment after the server calls itself ready.
			isReady: func(ctx context.Context) error {
				return p.server.ask(ctx, "/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system")
			},
			arguments: []string{
				"--etcd-servers=" + etcd, fmt.Sprintf("--secure-port=%d", ports[2]), "--bind-address=127.0.0.1",
				"--cert-dir=" + in("apiserver"), "--token-auth-file=" + secrets.tokens,
				"--authorization-mode=RBAC", "--anonymous-auth=false", "--allow-privileged=true",
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + secrets.key, "--service-account-signing-key-file=" + secrets.key,
				// Nobody makes the accounts and tokens that pods would mount.
				"--disable-admission-plugins=ServiceAccount",
				// The endpoints of the API server itself: they may not be loopback addresses.
				"--endpoint-reconciler-type=none",
				"--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112",
				// One that is asked to end ends its watches too, rather than wait a minute for them.
				"--shutdown-watch-termination-grace-period=2s",
				"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
			},
		},
		{
			name: Controllers, log: in("controllers.log"),
			// The account is the work of one of them.
			isReady: func(ctx context.Context) error {
				return errors.Join(health.ask(ctx, "/healthz"), p.server.ask(ctx, "/api/v1/namespaces/default/serviceaccounts/default"))
			},
			arguments: []string{
				"--kubeconfig=" + p.ready.Kubeconfig, "--leader-elect=false", "--controllers=" + strings.Join(controllers, ","),
				fmt.Sprintf("--secure-port=%d", ports[3]), "--bind-address=127.0.0.1", "--cert-dir=" + in("controllers"),
				"--authentication-kubeconfig=" + p.ready.Kubeconfig, "--authorization-kubeconfig=" + p.ready.Kubeconfig,
				"--service-account-private-key-file=" + secrets.key, "--root-ca-file=" + p.ready.CA,
				"--use-service-account-credentials=false",
				// Tests make more in a second than a cluster in a minute.
				"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-service-endpoint-syncs=10",
			},
		},
	}
	return p, nil
}

// start starts the parts one after the other.
func (p *plane) start(ctx context.Context) (ready, error) {
	for _, part := range p.parts {
		if err := p.startPart(ctx, part); err != nil {
			return ready{}, err
		}
	}
	version, err := p.server.version(ctx)
	p.ready.Version = version
	return p.ready, err
}

// startPart starts a part and waits until it is ready.
func (p *plane) startPart(ctx context.Context, part *part) error {
	if err := part.start(p.guard, p.ended); err != nil {
		return err
	}
	return p.await(ctx, part)
}

// await asks a part until it is ready.
func (p *plane) await(ctx context.Context, part *part) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := part.isReady(limited)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s is not ready after %v (%w); the end of its log:\n%s", part.name, patience, err, tail(part.log))
		case process := <-p.ended:
			if err := p.lost(process); err != nil {
				return err
			}
		}
	}
}

// lost is the error that the end of a process means, if nobody asked for it.
func (p *plane) lost(process *process) error {
	for _, part := range p.parts {
		if part.process == process {
			p.guard.forget(process)
			part.process = nil
			return fmt.Errorf("%w: %s (%v); the end of its log:\n%s", errLost, part.name, process.how, tail(part.log))
		}
	}
	if process == p.guard.process {
		return fmt.Errorf("%w: the guard, and without it something could be left behind", errLost)
	}
	return nil
}

// serve does what it is told to, until it is told to end or a part ends by itself.
func (p *plane) serve(ctx context.Context, commands <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case process := <-p.ended:
			if err := p.lost(process); err != nil {
				return err
			}
		case line := <-commands:
			if strings.TrimSpace(line) == "" {
				continue
			}
			err := p.obey(ctx, line)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if said := say(answerTo(line, err)); said != nil {
				return said
			}
			if errors.Is(err, errLost) {
				return err
			}
		}
	}
}

// end ends the parts, the last one first. Nothing of theirs is used again, so they are not asked.
func (p *plane) end() {
	for i := len(p.parts) - 1; i >= 0; i-- {
		p.parts[i].kill(p.guard)
	}
}
