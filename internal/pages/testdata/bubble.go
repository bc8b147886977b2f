package page

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) { TestAHoldIsLostInAnOutage(t) }

//pages:block
