import { Button, Code, Group } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import type { TracedTransfer, TransferRecord } from '@workspace-wallet/contract'
import { useState } from 'react'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { type Column, DataTable, Written } from '../../components/data-table.tsx'
import { Facts } from '../../components/facts.tsx'
import { CopyText, Id } from '../../components/id.tsx'
import { PageLink, TransferLink, WalletLink, WorkspaceLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useWorkspaceId } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { MoneyMovement } from './movement.tsx'
import { ReverseForm } from './reverse.tsx'

/** One transfer, deposit or withdrawal: between which wallets, how much, who made it, and what became of it. */
export function TransferPage() {
  const { transferId } = useParams({ from: '/transfers/$transferId' })
  const workspaceId = useWorkspaceId()
  const { transfers, wallets } = useText()
  const { mayChange } = useSession()
  const [isReversing, setReversing] = useState(false)
  const result = useRead('transfers.trace', { name: transferId, ...(workspaceId !== undefined && { workspaceId }) })
  const traced = result.data
  const remaining = traced?.transfer.amount.minus(traced.reversedAmount)
  const isReversible = traced?.transfer.type === 'TRANSFER' && traced.reverses === null && remaining?.gt(0)
  return (
    <Page
      title={traced ? wallets.types[traced.transfer.type] : transfers.transfer}
      about={<Id value={traced?.transfer.transferId ?? transferId} isFull />}
      actions={
        mayChange &&
        isReversible && (
          <Button variant="default" onClick={() => setReversing(true)}>
            {transfers.reverse}
          </Button>
        )
      }
    >
      <Loaded result={result}>
        {found => (
          <>
            <MoneyMovement traced={found} />
            <TransferFacts traced={found} />
            <Related title={transfers.reversals} records={found.reversals} modified={found.modified} />
            <Related
              title={transfers.reverses}
              records={found.reverses ? [found.reverses] : []}
              modified={found.modified}
            />
            <Related title={transfers.batch} records={found.batch} modified={found.modified} />
            <Receipt receipt={found.receipt} />
            {isReversing && remaining && (
              <ReverseForm transfer={found.transfer} remaining={remaining} onClose={() => setReversing(false)} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function TransferFacts({ traced: { transfer, reversedAmount } }: { traced: TracedTransfer }) {
  const { fields, transfers } = useText()
  const { workspaceId, currency, bizId, reference, remark, holdId, actor, requestId, clientAddress } = transfer
  return (
    <Facts
      facts={[
        [fields.time, <Time key="time" at={transfer.createdAt} />],
        [fields.bizId, <Written key="bizId">{bizId}</Written>],
        [fields.reference, <Written key="reference">{reference}</Written>],
        [fields.remark, <Written key="remark">{remark}</Written>],
        [transfers.actor, <Written key="actor">{actor}</Written>],
        [transfers.requestId, <Written key="requestId">{requestId}</Written>],
        [transfers.clientAddress, <Written key="address">{clientAddress}</Written>],
        [transfers.position, transfer.position],
        reversedAmount.isZero()
          ? null
          : [
              transfers.reversed,
              <Amount
                key="reversed"
                value={reversedAmount}
                currency={currency}
                fraction={widestFraction([currency])}
              />,
            ],
        holdId === null
          ? null
          : [
              transfers.hold,
              <Id key="hold" value={holdId}>
                <PageLink to="/holds" search={{ workspace: workspaceId, hold: holdId }}>
                  {holdId}
                </PageLink>
              </Id>,
            ],
        [fields.workspace, <WorkspaceLink key="workspace" workspaceId={workspaceId} />],
      ]}
    />
  )
}

type RelatedProps = { title: string; records: readonly TransferRecord[]; modified: readonly string[] }

/** @param modified the IDs of those that were written outside the service */
function Related({ title, records, modified }: RelatedProps) {
  const { fields, keys, transfers } = useText()
  if (records.length === 0) return null
  const fraction = widestFraction(records.map(({ currency }) => currency))
  const wallet = (workspaceId: string, walletId: string | null) =>
    walletId === null ? transfers.outside : <WalletLink workspaceId={workspaceId} walletId={walletId} />
  const columns: Column<TransferRecord>[] = [
    { label: fields.time, cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      label: fields.transfer,
      cell: ({ workspaceId, transferId }) => (
        <Group gap="xs" wrap="nowrap">
          <TransferLink workspaceId={workspaceId} transferId={transferId} />
          {modified.includes(transferId) && <Tag tone="bad">{keys.modified}</Tag>}
        </Group>
      ),
    },
    { label: fields.bizId, cell: ({ bizId }) => <Written>{bizId}</Written> },
    { label: transfers.source, cell: ({ workspaceId, sourceWalletId }) => wallet(workspaceId, sourceWalletId) },
    { label: transfers.target, cell: ({ workspaceId, targetWalletId }) => wallet(workspaceId, targetWalletId) },
    {
      label: fields.amount,
      cell: ({ amount, currency }) => <Amount value={amount} currency={currency} fraction={fraction} />,
      isNumeric: true,
    },
  ]
  return (
    <Section title={title}>
      <DataTable label={title} rows={records} columns={columns} rowKey={({ transferId }) => transferId} empty={null} />
    </Section>
  )
}

function Receipt({ receipt }: { receipt: string | null }) {
  const { transfers } = useText()
  return (
    <Section title={transfers.receipt}>
      {receipt === null ? (
        transfers.noReceipt
      ) : (
        <Group gap="xs" wrap="nowrap" align="flex-start">
          <Code className="wrap">{receipt}</Code>
          <CopyText value={receipt} name={transfers.receipt} />
        </Group>
      )}
    </Section>
  )
}
