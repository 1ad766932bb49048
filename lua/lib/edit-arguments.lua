-- What every change of one job or run is given first.
-- ARGV: 1 tag, 2 layout, 3 base, 4 bucket, 5 identity, 6 request.
local tag, layout, base, bucket, identity, request = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local queueName, jobId = string.match(identity, '^([^:]+):(.+)$')
