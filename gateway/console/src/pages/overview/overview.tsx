import { Alert, SimpleGrid } from '@mantine/core'
import { type SystemStatus, unusedForDays } from '@workspace-wallet/contract'
import type { ReactNode } from 'react'
import { DataTable, Written } from '../../components/data-table.tsx'
import { KeyLink, PageLink, WorkspaceLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Page, Section } from '../../components/page.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { ActivitySection } from './activity.tsx'
import { InstancesSection } from './instances.tsx'

const refreshMs = 10_000
/** How many refused calls are counted by their step: the newest. */
const countedRefusals = 200

/** What an operator looks at first. It refreshes itself. */
export function OverviewPage() {
  const { navigation, overview } = useText()
  const result = useRead('system.status', {}, { refreshMs })
  return (
    <Page title={navigation.overview} about={overview.about}>
      <Loaded result={result}>
        {status => (
          <>
            <HaltedAlert halted={status.halted} />
            <Evidence status={status} />
            <ActivitySection />
            <InstancesSection status={status} />
            <RefusalsByStep />
            <Credentials status={status} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function HaltedAlert({ halted }: Pick<SystemStatus, 'halted'>) {
  const { overview } = useText()
  if (halted.length === 0) return null
  return (
    <Alert color="red" variant="outline" role="alert" title={overview.halted(halted.length)}>
      {halted.map(({ workspaceId, reason }) => (
        <div key={workspaceId}>
          <WorkspaceLink workspaceId={workspaceId} /> <Written>{reason}</Written>
        </div>
      ))}
      <PageLink to="/ledger">{overview.toLedger}</PageLink>
    </Alert>
  )
}

/** The last verification, checkpoint and backup. */
function Evidence({ status }: { status: SystemStatus }) {
  const { overview } = useText()
  const { lastVerification, lastWholeVerification, lastCheckpoint, lastBackup } = status
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 4 }}>
      <Card title={overview.verification} at={lastVerification?.at} missing={overview.neverVerified}>
        <Soundness of={lastVerification} />
      </Card>
      <Card title={overview.wholeVerification} at={lastWholeVerification?.at} missing={overview.neverVerified}>
        <Soundness of={lastWholeVerification} />
      </Card>
      <Card title={overview.checkpoint} at={lastCheckpoint?.at} missing={overview.noCheckpoint} />
      <Card title={overview.backup} at={lastBackup?.at} missing={overview.noBackup}>
        {lastBackup && <Written>{lastBackup.name}</Written>}
      </Card>
    </SimpleGrid>
  )
}

function Soundness({ of: verification }: { of: SystemStatus['lastVerification'] }) {
  const { overview } = useText()
  return (
    verification && (
      <Tag tone={verification.ok ? 'good' : 'bad'}>
        {verification.ok ? overview.sound : overview.broken(verification.brokenRules.length)}
      </Tag>
    )
  )
}

type CardProps = { title: string; at: Date | undefined; missing: string; children?: ReactNode }

function Card({ title, at, missing, children }: CardProps) {
  return (
    <section className="card" aria-label={title}>
      <span className="card-title">{title}</span>
      {at ? (
        <>
          <Time at={at} /> {children}
        </>
      ) : (
        <Tag tone="warn">{missing}</Tag>
      )}
    </section>
  )
}

/** The newest refused calls, counted by the step that refused them. */
function RefusalsByStep() {
  const { overview, refusals } = useText()
  const result = useRead('refusals.list', { limit: countedRefusals }, { refreshMs })
  return (
    <Section title={overview.refusals} actions={<PageLink to="/refusals">{overview.allRefusals}</PageLink>}>
      <Loaded result={result}>
        {({ refusals: found }) => {
          const steps = Object.entries(Object.groupBy(found, ({ step }) => step))
          return (
            <DataTable
              label={overview.refusals}
              rows={steps.map(([step, each]) => ({ step, each: each ?? [] }))}
              rowKey={({ step }) => step}
              empty={<Empty>{refusals.empty}</Empty>}
              columns={[
                { label: refusals.step, cell: ({ step }) => step },
                { label: overview.count(countedRefusals), cell: ({ each }) => each.length, isNumeric: true },
                { label: overview.newest, cell: ({ each }) => <Time at={each[0]!.at} /> },
              ]}
            />
          )
        }}
      </Loaded>
    </Section>
  )
}

/** Keys and operators that stop working soon, and keys that nobody uses. */
function Credentials({ status: { credentials } }: { status: SystemStatus }) {
  const { overview, fields, keys } = useText()
  if (!credentials)
    return (
      <Section title={overview.expires}>
        <Empty>{overview.credentialsNotFound}</Empty>
      </Section>
    )
  const { expiringKeys, expiringOperators, unusedKeys } = credentials
  const rows = [
    ...expiringOperators.map(({ name, expiresAt }) => ({ name, key: null, expiresAt })),
    ...expiringKeys.map(key => ({ name: key.name, key, expiresAt: key.expiresAt })),
  ]
  return (
    <>
      <Section title={overview.expires}>
        <DataTable
          label={overview.expires}
          rows={rows}
          rowKey={({ name, key }) => key?.apiKey ?? name}
          empty={<Empty>{overview.nothingExpires}</Empty>}
          columns={[
            { label: fields.name, cell: ({ name }) => <Written>{name}</Written> },
            {
              label: keys.key,
              cell: ({ key }) =>
                key ? <KeyLink workspaceId={key.workspaceId} apiKey={key.apiKey} /> : overview.operator,
            },
            { label: keys.expires, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
          ]}
        />
      </Section>
      {unusedKeys.length > 0 && (
        <Section title={overview.unused(unusedForDays)}>
          <DataTable
            label={overview.unused(unusedForDays)}
            rows={unusedKeys}
            rowKey={({ apiKey }) => apiKey}
            empty={null}
            columns={[
              { label: fields.name, cell: ({ name }) => <Written>{name}</Written> },
              {
                label: keys.key,
                cell: ({ workspaceId, apiKey }) => <KeyLink workspaceId={workspaceId} apiKey={apiKey} />,
              },
              {
                label: keys.lastUsed,
                cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : keys.neverUsed),
              },
            ]}
          />
        </Section>
      )}
    </>
  )
}
