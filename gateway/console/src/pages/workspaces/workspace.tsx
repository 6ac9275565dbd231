import { Alert, Group } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import type { WorkspaceDetails } from '@workspace-wallet/contract'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { DataTable, Written } from '../../components/data-table.tsx'
import { Facts } from '../../components/facts.tsx'
import { Id } from '../../components/id.tsx'
import { LimitsSection } from '../../components/limits.tsx'
import { PageLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { KeysTable } from '../keys/keys-table.tsx'
import { MembersSection } from './members.tsx'
import { DeleteWorkspaceButton } from './workspace-actions.tsx'
import { LedgerStatus } from './workspaces.tsx'

/** One workspace: its funds, members, keys and limits. */
export function WorkspacePage() {
  const { workspaceId } = useParams({ from: '/workspaces/$workspaceId' })
  const { workspaces, navigation } = useText()
  const { mayChange } = useSession()
  const result = useRead('workspaces.get', { workspaceId })
  const isDeletable = mayChange && result.data?.deletedAt === null
  return (
    <Page
      title={result.data?.name ?? workspaces.workspace}
      about={<Id value={workspaceId} isFull />}
      actions={isDeletable && <DeleteWorkspaceButton workspaceId={workspaceId} />}
    >
      <Loaded result={result}>
        {workspace => (
          <>
            <Details workspace={workspace} />
            <MembersSection workspaceId={workspaceId} />
            <Section title={navigation.keys}>
              <KeysTable workspaceId={workspaceId} />
            </Section>
            <LimitsSection workspaceId={workspaceId} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Details({ workspace }: { workspace: WorkspaceDetails }) {
  const { workspaces, navigation, fields } = useText()
  const { workspaceId, funds, haltReason, wallets, transfers, members, apiKeys, createdAt, deletedAt } = workspace
  const search = { workspace: workspaceId }
  const fraction = widestFraction(funds.map(({ currency }) => currency))
  return (
    <>
      {haltReason !== null && (
        <Alert color="red" variant="outline" role="alert" title={workspaces.halted}>
          <Written>{haltReason}</Written> <PageLink to="/ledger">{workspaces.toLedger}</PageLink>
        </Alert>
      )}
      <Facts
        facts={[
          [fields.status, <LedgerStatus key="status" workspace={workspace} />],
          [
            navigation.wallets,
            <PageLink key="wallets" to="/wallets" search={search}>
              {wallets}
            </PageLink>,
          ],
          [
            navigation.transfers,
            <PageLink key="transfers" to="/transfers" search={search}>
              {transfers}
            </PageLink>,
          ],
          [workspaces.members, members],
          [navigation.keys, apiKeys],
          [fields.created, <Time key="created" at={createdAt} />],
          deletedAt && [workspaces.deletedAt, <Time key="deleted" at={deletedAt} />],
        ]}
      />
      <Group gap="lg">
        <PageLink to="/holds" search={search}>
          {navigation.holds}
        </PageLink>
        <PageLink to="/events" search={search}>
          {navigation.events}
        </PageLink>
        <PageLink to="/webhooks" search={search}>
          {navigation.webhooks}
        </PageLink>
        <PageLink to="/audit" search={search}>
          {navigation.audit}
        </PageLink>
      </Group>
      {funds.length > 0 && (
        <Section title={workspaces.funds}>
          <DataTable
            label={workspaces.funds}
            rows={funds}
            rowKey={({ currency }) => currency}
            empty={null}
            columns={[
              { label: fields.currency, cell: ({ currency }) => currency },
              {
                label: workspaces.total,
                cell: ({ balance, currency }) => <Amount value={balance} currency={currency} fraction={fraction} />,
                isNumeric: true,
              },
            ]}
          />
        </Section>
      )}
    </>
  )
}
