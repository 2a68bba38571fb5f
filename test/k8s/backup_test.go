package k8s

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// withBackup renders production with the component that backs up the log.
func withBackup(t *testing.T) *rendered {
	t.Helper()
	files := tree(t)
	files["/deploy/k8s/overlays/own/kustomization.yaml"] = `
namespace: mneme
resources: [../production]
components: [../../components/backup]
images: [{name: mneme, newName: registry.example.com/mneme, newTag: 1.0.0}]
`
	r, err := render(files, "overlays/own")
	require.NoError(t, err)
	return r
}

func TestTheBackupFitsTheCluster(t *testing.T) {
	t.Parallel()
	r := withBackup(t)
	require.Empty(t, check(r, built(t)))
	job := r.workload("backup").job.Spec
	require.Equal(t, batchv1.ForbidConcurrent, job.ConcurrencyPolicy)
	require.Equal(t, corev1.RestartPolicyNever, job.JobTemplate.Spec.Template.Spec.RestartPolicy)
}

// It runs the container of the job, with the address of a server and a folder of this machine.
func TestTheBackupCommandBacksUpTheLog(t *testing.T) {
	t.Parallel()
	p := built(t)
	nats := p.up(t)

	r := withBackup(t)
	c := r.workload("backup").container()
	variables, err := r.environment(c)
	require.NoError(t, err)
	require.Equal(t, "nats://backup:of-backup@nats:4222", variables["MNEME_NATS_URL"])
	require.Equal(t, "metadata.labels['batch.kubernetes.io/job-name']", variables["JOB"])
	folder := t.TempDir()
	require.Len(t, c.VolumeMounts, 1)
	for _, name := range []string{"backup-29400000", "backup-29401440"} {
		maps.Copy(variables, map[string]string{"MNEME_NATS_URL": nats, "JOB": name})
		var args []string
		for _, arg := range c.Command {
			args = append(args, strings.Replace(expand(arg, variables), c.VolumeMounts[0].MountPath, folder, 1))
		}
		command := exec.Command(filepath.Join(p.dir, args[0]), args[1:]...)
		command.Env = environ(variables)
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.FileExists(t, filepath.Join(folder, name, "manifest.json"))
	}
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 2)
}
