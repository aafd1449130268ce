"""Our own stores keep the contract we ship."""

from windlass.testing import contract


class TestSubmitting(contract.SubmissionContract):
    pass


class TestKeys(contract.KeysContract):
    pass


class TestClaiming(contract.ClaimsContract):
    pass


class TestCompleting(contract.CompletionContract):
    pass


class TestCounting(contract.StatisticsContract):
    pass


class TestFollowing(contract.FollowUpsContract):
    pass


class TestLanes(contract.LanesContract):
    pass


class TestLeases(contract.LeasesContract):
    pass


class TestCluster(contract.ClusterContract):
    pass


class TestReading(contract.ReadsContract):
    pass


class TestReporting(contract.ProgressReportsContract):
    pass


class TestRunning(contract.PlanRunsContract):
    pass


class TestMigrating(contract.MigrationsContract):
    pass


class TestArchiving(contract.ArchiveContract):
    pass


class TestArchivingFlows(contract.FlowArchiveContract):
    pass


class TestSteering(contract.MovesContract):
    pass


class TestGates(contract.GatesContract):
    pass


class TestLimits(contract.LimitsContract):
    pass


class TestCircuits(contract.CircuitsContract):
    pass


class TestBurying(contract.DeadLettersContract):
    pass


class TestTriaging(contract.TriageContract):
    pass


class TestTrusting(contract.TrustedClaimsContract):
    pass


class TestExpiry(contract.ExpiryContract):
    pass


class TestOrder(contract.OrderContract):
    pass


class TestFlows(contract.FlowsContract):
    pass


class TestFlowCounts(contract.FlowCountsContract):
    pass


class TestFlowBranches(contract.FlowBranchesContract):
    pass


class TestFlowRevival(contract.FlowRevivalContract):
    pass


class TestBatches(contract.BatchesContract):
    pass


class TestFlowChecks(contract.FlowChecksContract):
    pass


class TestTicks(contract.ScheduleTicksContract):
    pass


class TestDeclaringSchedules(contract.ScheduleDeclarationsContract):
    pass


class TestExternalWaits(contract.ExternalWaitsContract):
    pass


class TestSignals(contract.SignalsContract):
    pass


class TestPublications(contract.PublicationsContract):
    pass
