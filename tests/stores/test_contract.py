"""Our own stores keep the contract we ship."""

from windlass.testing import contract


class TestSubmitting(contract.SubmissionContract):
    pass


class TestKeys(contract.KeysContract):
    pass


class TestClaiming(contract.ClaimingContract):
    pass


class TestCompleting(contract.CompletingContract):
    pass


class TestCounting(contract.CountingContract):
    pass


class TestFollowing(contract.FollowingContract):
    pass


class TestLanes(contract.LanesContract):
    pass


class TestLeases(contract.LeasesContract):
    pass


class TestCluster(contract.ClusterContract):
    pass


class TestReading(contract.ReadingContract):
    pass


class TestReporting(contract.ReportingContract):
    pass


class TestRunning(contract.RunningContract):
    pass


class TestMigrating(contract.MigratingContract):
    pass


class TestArchiving(contract.ArchivingContract):
    pass


class TestSteering(contract.SteeringContract):
    pass


class TestGates(contract.GatesContract):
    pass


class TestLimits(contract.LimitsContract):
    pass


class TestCircuits(contract.CircuitsContract):
    pass


class TestBurying(contract.BuryingContract):
    pass


class TestTriaging(contract.TriagingContract):
    pass


class TestTrusting(contract.TrustingContract):
    pass


class TestExpiry(contract.ExpiryContract):
    pass


class TestOrder(contract.OrderContract):
    pass
