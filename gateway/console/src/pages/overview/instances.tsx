import { type Instance, instanceLabel, kindsOfMixedVersions, type SystemStatus } from '@workspace-wallet/contract'
import { DataTable, Written } from '../../components/data-table.tsx'
import { Facts } from '../../components/facts.tsx'
import { Empty, Section } from '../../components/page.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'

/** The versions that run, and every instance of core, gateway and courier with its state. */
export function InstancesSection({ status: { now, versions, instances } }: { status: SystemStatus }) {
  const { overview, fields } = useText()
  return (
    <Section title={overview.parts}>
      <Facts
        facts={[
          [overview.core, versions.core],
          ['Node.js', versions.node],
          ['PostgreSQL', versions.postgresql],
          [overview.time, <Time key="now" at={now} />],
        ]}
      />
      <MixedVersions instances={instances} />
      <DataTable
        label={overview.instances}
        rows={instances}
        rowKey={({ instanceId }) => instanceId}
        empty={<Empty>{overview.noInstances}</Empty>}
        columns={[
          {
            label: overview.instance,
            cell: instance => (
              <span title={instance.instanceId}>
                <Written>{instanceLabel(instance)}</Written>
              </span>
            ),
          },
          { label: overview.host, cell: ({ host }) => <Written>{host}</Written> },
          { label: overview.version, cell: ({ version }) => <Written>{version}</Written> },
          { label: fields.status, cell: instance => <State of={instance} /> },
          { label: overview.waiting, cell: ({ waiting }) => waiting, isNumeric: true },
          { label: overview.started, cell: ({ startedAt }) => <Time at={startedAt} /> },
        ]}
      />
    </Section>
  )
}

function MixedVersions({ instances }: { instances: readonly Instance[] }) {
  const { overview } = useText()
  const kinds = kindsOfMixedVersions(instances)
  if (kinds.length === 0) return null
  return (
    <p role="status">
      <Tag tone="warn">{overview.mixedVersions}</Tag> {kinds.map(kind => overview.kinds[kind]).join(', ')}
    </p>
  )
}

function State({ of: { isRunning, seenAt, fault, unhealthyCores } }: { of: Instance }) {
  const { overview } = useText()
  if (!isRunning)
    return (
      <>
        <Tag tone="bad">{overview.notSeen}</Tag> <Time at={seenAt} />
      </>
    )
  if (fault === null && unhealthyCores === 0) return <Tag tone="good">{overview.running}</Tag>
  return (
    <>
      <Tag tone="warn">{overview.impaired}</Tag> <Written>{fault ?? overview.unhealthyCores(unhealthyCores)}</Written>
    </>
  )
}
