package plane

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// secrets are made anew for every control plane.
type secrets struct {
	// key is the file that tokens of service accounts are signed with.
	key string
	// tokens is the file with the administrator's token.
	tokens string
	token  string
}

func writeSecrets(dir string) (secrets, error) {
	made := secrets{key: filepath.Join(dir, "sa.key"), tokens: filepath.Join(dir, "tokens.csv")}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return made, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(made.key, text, 0o600); err != nil {
		return made, err
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return made, err
	}
	made.token = hex.EncodeToString(random)
	return made, os.WriteFile(made.tokens, []byte(made.token+",admin,admin,system:masters\n"), 0o600)
}

func writeKubeconfig(ready ready, token string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: testenv
  cluster: {server: %q, certificate-authority: %q}
users:
- name: admin
  user: {token: %q}
contexts:
- name: testenv
  context: {cluster: testenv, user: admin}
current-context: testenv
`, ready.URL, ready.CA, token)
	return os.WriteFile(ready.Kubeconfig, []byte(text), 0o600)
}
