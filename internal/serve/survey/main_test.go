package survey_test

import (
	"os"
	"testing"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }
