#!/usr/bin/env bash
# Hong et al. on CIFAR: the runs behind G7 to G11, G15 and G16, about half an hour of one H200.
#   queues/granularity.sh --max-seconds 3600
# Options are those of rarefy run. What is in results/ is skipped, the same command goes on.
set -u
ended=0
for one in cifar100:paper transfer:paper binary:paper binary:classes cifar100:checkpoints cifar100:grid; do
    rarefy run "granularity-${one%:*}" --scale "${one#*:}" --results results --jobs 4 "$@"
    case $? in
    0) ;;
    3) [ "$ended" = 1 ] || ended=3 ;;
    130) exit 130 ;;
    *) ended=1 ;;
    esac
done
exit $ended
