import { prepareCopying } from './copy.ts'
import { prepareNavigation } from './navigation.ts'
import { prepareSearch } from './search.ts'

prepareCopying()
prepareSearch()
prepareNavigation()
