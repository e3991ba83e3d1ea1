package plane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// answerWithin is how long one question may take; a paused part answers none.
const answerWithin = 5 * time.Second

// server is somebody whom we ask over HTTP. Its certificate is its own CA, and it writes that file
// when it is first started, so the file is read at every question.
type server struct {
	url   string
	ca    string
	token string
}

// ask is content when every path is answered with 200.
func (s server) ask(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if _, err := s.get(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// version of Kubernetes that the API server says it is.
func (s server) version(ctx context.Context) (string, error) {
	text, err := s.get(ctx, "/version")
	if err != nil {
		return "", err
	}
	var version struct{ GitVersion string }
	err = json.Unmarshal(text, &version)
	return version.GitVersion, err
}

func (s server) get(ctx context.Context, path string) ([]byte, error) {
	pool := x509.NewCertPool()
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(text)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	// No proxy, and no connection that outlives the question.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: answerWithin}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return text, err
}
