import { Anchor } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { ComponentProps } from 'react'
import { Id, shortId } from './id.tsx'

/** A link to a page of the console. */
export const PageLink = createLink((props: ComponentProps<'a'>) => <Anchor inherit {...props} />)

type RecordLinkProps = { workspaceId: string; isFull?: boolean }

const textOf = (id: string, isFull: boolean) => (isFull ? id : shortId(id))

export function WorkspaceLink({ workspaceId, isFull = false }: RecordLinkProps) {
  return (
    <Id value={workspaceId} isFull={isFull}>
      <PageLink to="/workspaces/$workspaceId" params={{ workspaceId }} search={{ workspace: workspaceId }}>
        {textOf(workspaceId, isFull)}
      </PageLink>
    </Id>
  )
}

export function WalletLink({ workspaceId, walletId, isFull = false }: RecordLinkProps & { walletId: string }) {
  return (
    <Id value={walletId} isFull={isFull}>
      <PageLink to="/wallets/$walletId" params={{ walletId }} search={{ workspace: workspaceId }}>
        {textOf(walletId, isFull)}
      </PageLink>
    </Id>
  )
}

export function TransferLink({ workspaceId, transferId, isFull = false }: RecordLinkProps & { transferId: string }) {
  return (
    <Id value={transferId} isFull={isFull}>
      <PageLink to="/transfers/$transferId" params={{ transferId }} search={{ workspace: workspaceId }}>
        {textOf(transferId, isFull)}
      </PageLink>
    </Id>
  )
}

export function KeyLink({ workspaceId, apiKey, isFull = false }: RecordLinkProps & { apiKey: string }) {
  return (
    <Id value={apiKey} isFull={isFull}>
      <PageLink to="/keys/$apiKey" params={{ apiKey }} search={{ workspace: workspaceId }}>
        {textOf(apiKey, isFull)}
      </PageLink>
    </Id>
  )
}
