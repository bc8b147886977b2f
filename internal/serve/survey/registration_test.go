package survey_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// registrations are what is registered, and with which data.
func (s *scene) registrations() (all []string) {
	for _, r := range s.survey.State().Registrations {
		all = append(all, r.Path+" "+r.Data)
	}
	return all
}

func (s *scene) member(client *recipes.Client, id string) *recipes.GroupMember {
	s.Helper()
	m, err := recipes.NewGroupMember(client, "/groups/api", id, []byte("of "+id))
	require.NoError(s, err)
	require.NoError(s, m.Await(s.Context()))
	return m
}

// A registration is known whether it was there before or comes later, and until it goes.
func TestRegistrations(t *testing.T) {
	var first *recipes.GroupMember
	inScene(t, config(), func(s *scene) {
		first = s.member(s.client, "one")
		s.mustCreate("/groups/api/persistent", 0)
		time.Sleep(time.Minute) // what is young is watched anyway
	}, func(s *scene) {
		require.Equal(s, []string{"/groups/api/one of one"}, s.registrations())
		r := s.survey.State().Registrations[0]
		require.Equal(s, fmt.Sprintf("0x%x", uint64(s.client.SessionID())), r.Session)
		require.WithinDuration(s, time.Now().Add(-time.Minute), r.Since, 5*time.Second)
		other := locktest.ConnectThrough(s.T, s.cluster, "other")
		s.member(other, "two")
		s.wait()
		require.Equal(s, []string{
			"/groups/api/one of one", "/groups/api/two of two",
		}, s.registrations())
		require.NoError(s, first.Close(s.Context()))
		s.wait()
		require.Equal(s, []string{"/groups/api/two of two"}, s.registrations())
		// In one moment another session's znode takes the place of one.
		s.mustCreate("/groups/api/a", zk.FlagEphemeral)
		s.wait()
		_, err := other.Unwrap().Multi(
			&zk.DeleteRequest{Path: "/groups/api/a", Version: -1},
			&zk.CreateRequest{
				Path: "/groups/api/a", Acl: zk.WorldACL(zk.PermAll),
				Flags: zk.FlagEphemeral,
			})
		require.NoError(s, err)
		s.wait()
		r = s.survey.State().Registrations[0]
		require.Equal(s, "/groups/api/a", r.Path)
		require.Equal(s, fmt.Sprintf("0x%x", uint64(other.SessionID())), r.Session)
		require.Empty(s, s.survey.State().Locks)
		require.Empty(s, s.survey.State().Findings)
	})
}

// What is in the path of a lock is unrelated, and what a server has numbered is a queue
// that nobody knows.
func TestWhatIsNoRegistration(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		s.mustCreate("/lock/config", zk.FlagEphemeral)
		s.mustCreate("/other", 0)
		s.mustCreate("/other/n-0000000001", zk.FlagEphemeral)
	}, func(s *scene) {
		require.Empty(s, s.registrations())
		require.Len(s, s.survey.State().Findings, 1)
	})
}

// It leaves while the survey has no session, next to a persistent znode.
func TestARegistrationThatEndsUnseenIsForgotten(t *testing.T) {
	var other *recipes.Client
	inScene(t, config(), func(s *scene) {
		other = locktest.ConnectThrough(s.T, s.cluster, "other")
		s.mustCreate("/x", 0)
		s.mustCreate("/x/app", 0)
		s.mustCreate("/x/app/config", 0)
		_, err := other.Create("/x/app/w", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(s, err)
		time.Sleep(time.Minute)
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Equal(s, []string{"/x/app/w "}, s.registrations())
		s.cluster.Link("survey").Cut()
		require.NoError(s, other.Delete("/x/app/w", -1))
		for _, id := range s.cluster.Sessions() {
			if id != s.client.SessionID() && id != other.SessionID() {
				require.True(s, s.cluster.ExpireSession(id))
			}
		}
		s.cluster.Link("survey").Heal()
		time.Sleep(30 * time.Minute)
		require.Empty(s, s.registrations())
	})
}

// A persistent znode takes its place in one transaction.
func TestARegistrationWhosePlaceIsTaken(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/groups", 0)
		s.mustCreate("/groups/api", 0)
		s.mustCreate("/groups/api/a", zk.FlagEphemeral)
		time.Sleep(time.Minute)
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Len(s, s.registrations(), 1)
		_, err := s.client.Unwrap().Multi(
			&zk.DeleteRequest{Path: "/groups/api/a", Version: -1},
			&zk.CreateRequest{Path: "/groups/api/a", Acl: zk.WorldACL(zk.PermAll)})
		require.NoError(s, err)
		s.wait()
		require.Empty(s, s.registrations())
	})
}
